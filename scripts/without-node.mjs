// Takes the pinned Node out of a manifest and its lockfile, in place: an image has a Node already, and it is 200 MB.
//
//   node without-node.mjs package.json package-lock.json
import { readFileSync, writeFileSync } from 'node:fs'

const isNode = (name) => /^(node_modules\/)?node(-bin)?-(darwin|linux|win)-/.test(name)

for (const path of process.argv.slice(2)) {
  const tree = JSON.parse(readFileSync(path, 'utf8'))
  for (const names of [tree.optionalDependencies, tree.packages, tree.packages?.['']?.optionalDependencies]) {
    for (const name of Object.keys(names ?? {})) if (isNode(name)) delete names[name]
  }
  writeFileSync(path, JSON.stringify(tree))
}
