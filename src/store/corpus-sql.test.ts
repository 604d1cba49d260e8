import { describe, expect, it } from 'vitest'
import {
  listCorporaSql,
  listDocumentsSql,
  listFilesSql,
  SQL,
  searchTermsSql,
  searchVectorsSql,
  setVectorsSql,
} from './corpus-sql.ts'

/** The indexer asks it for all tenants. */
const FOR_ALL = ['unfinished']

const statements = Object.entries({
  ...SQL,
  listCorpora: listCorporaSql('asc'),
  listDocuments: listDocumentsSql('desc'),
  listFiles: listFilesSql('asc'),
  searchTerms: searchTermsSql(' and true'),
  searchVectors: searchVectorsSql(512, ''),
  setVectors: setVectorsSql(8),
}).filter(([name]) => !FOR_ALL.includes(name))

describe.each(statements)('%s', (_, sql) => {
  it('names the tenant as its first parameter', () => expect(sql).toMatch(/tenant_id = \$1::text|values \(\$1::text/))

  it('reads, changes and removes rows of that tenant only', () => {
    const touched =
      sql.match(
        /\b(from|join|update|delete from) (corpus|document|passage|passage_index|passage_vector|term|file)\b/g,
      ) ?? []
    const bound = sql.match(/tenant_id = (\$1::text|[a-z]\.tenant_id)/g) ?? []
    expect(bound.length).toBeGreaterThanOrEqual(touched.filter((part) => !/^join passage(_index)?$/.test(part)).length)
  })

  it('is one statement', () => expect(sql.replace(/;\s*$/, '')).not.toContain(';'))
})
