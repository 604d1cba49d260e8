// Writes the tables of the scenario format into docs/operations/simulate-and-bench.md from the schema; a test fails when
// they differ from it. usage: npm run scenario-format
import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ScenarioSchema } from '../src/sim/scenario/scenario.ts'

export const PAGE_PATH = 'docs/operations/simulate-and-bench.md'
const BEGIN = '<!-- made by npm run scenario-format: begin -->'
const END = '<!-- made by npm run scenario-format: end -->'

export function scenarioFormat() {
  const sections = [['The file', ScenarioSchema, '']]
  const found = []
  while (sections.length > 0) {
    const [title, node, about] = sections.shift()
    found.push(sectionText(title, node, about))
    // Blocks and lists of blocks get a table of their own, in the order in which they are met.
    for (const [name, child] of Object.entries(node.properties ?? {})) {
      const inner = blockOf(child)
      if (inner !== undefined) sections.push([`\`${name}\``, inner, child.description ?? ''])
    }
  }
  return [...new Set(found)].join('\n')
}

/** The block that a value is, or is a list or a table of, if we know what is in it. */
function blockOf(node) {
  const inner = node.items ?? Object.values(node.patternProperties ?? {})[0] ?? node
  if (inner.anyOf?.every((branch) => branch.properties?.kind !== undefined)) return inner
  return Object.keys(inner.properties ?? {}).length > 0 ? inner : undefined
}

function sectionText(title, node, about) {
  const rows =
    node.anyOf === undefined
      ? Object.entries(node.properties).map(([name, child]) => rowOf(name, child, node))
      : node.anyOf.flatMap((branch) =>
          Object.entries(branch.properties)
            .filter(([name]) => name !== 'kind')
            .map(([name, child]) => rowOf(`${branch.properties.kind.const}: ${name}`, child, branch)),
        )
  const head = node.anyOf === undefined ? 'Name' : 'Kind: name'
  const table = [[head, 'Value', '', 'Meaning'], ['---', '---', '---', '---'], ...rows]
  const intro = about === '' ? '' : `${about}\n\n`
  return `### ${title}\n\n${intro}${table.map((row) => `| ${row.join(' | ')} |`).join('\n')}\n`
}

function rowOf(name, node, parent) {
  const isRequired = parent.required?.includes(name.replace(/^.*: /, '')) === true
  return [`\`${name}\``, kindOf(node), isRequired ? 'required' : '', node.description ?? seeOf(name, node)]
}

const seeOf = (name, node) => (blockOf(node) === undefined ? '' : `See \`${name.replace(/^.*: /, '')}\` below.`)

function kindOf(node) {
  if (node.enum !== undefined) return node.enum.map((choice) => `\`${choice}\``).join(', ')
  if (node.const !== undefined) return `\`${node.const}\``
  if (node.anyOf !== undefined) {
    const kinds = node.anyOf.map((branch) => branch.properties?.kind?.const)
    return kinds.every((kind) => kind !== undefined)
      ? `kind ${kinds.map((kind) => `\`${kind}\``).join(', ')}`
      : node.anyOf.map(kindOf).join(' or ')
  }
  if (node.type === 'array') return 'list'
  if (node.type === 'object') return 'block'
  if (node.type === 'string') return 'text'
  return `${node.type === 'integer' ? 'whole number' : 'number'}${boundsOf(node)}`
}

function boundsOf({ minimum, maximum, exclusiveMinimum }) {
  if (exclusiveMinimum !== undefined) return ` above ${exclusiveMinimum}`
  if (minimum !== undefined && maximum !== undefined) return ` ${minimum} to ${maximum.toLocaleString('en-US')}`
  return minimum === undefined ? '' : ` from ${minimum}`
}

/** The page with its tables as the schema has them. */
export function withFormat(page) {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`${PAGE_PATH} lacks the marks for its generated part`)
  return `${page.slice(0, begin + BEGIN.length)}\n\n${scenarioFormat()}\n${page.slice(end)}`
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const path = join(dirname(fileURLToPath(import.meta.url)), '..', PAGE_PATH)
  writeFileSync(path, withFormat(readFileSync(path, 'utf8')))
}
