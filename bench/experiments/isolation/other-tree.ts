import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

/**
 * Loaded before `work.ts` as `other-tree.ts?tree=PATH`: this tree's measuring code then runs the `src/` of another tree.
 * That one needs no code of this experiment, so commits from before it can be measured.
 */
const tree = new URL(import.meta.url).searchParams.get('tree')
if (tree === null) throw new Error('other-tree.ts is imported with ?tree=PATH')

const own = new URL('../../../src/', import.meta.url).href
const other = new URL('src/', `${pathToFileURL(tree).href}/`).href

registerHooks({
  resolve(specifier, context, nextResolve) {
    const found = nextResolve(specifier, context)
    return found.url.startsWith(own) ? { ...found, url: other + found.url.slice(own.length) } : found
  },
})
