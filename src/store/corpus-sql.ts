/**
 * Every statement about corpora, in one place. A test checks two rules. Each statement has the tenant as its first
 * parameter (except `unfinished`, with which the indexer asks for all tenants in turn). And each operation is one
 * statement, so that it is atomic without a transaction that could be left open.
 */

const CORPUS_FACTS = `c.tenant_id as "tenantId", c.id, c.name, c.version::float8 as version, c.deletions::float8 as deletions,
  c.embedder, c.dimensions, c.passages as "passageCount"`

const CORPUS = `${CORPUS_FACTS}, c.bytes::float8 as bytes, c.metadata, c.created_at_s::float8 as "createdAtS",
  (select jsonb_build_object('counts', jsonb_object_agg(s.status, s.n), 'embedded', sum(s.embedded)) from (
    select d.status, count(*) as n, sum(d.embedded) as embedded from document d
    where d.tenant_id = c.tenant_id and d.corpus_id = c.id group by 1
  ) s) as documents`

const DOCUMENT = `d.id, d.corpus_id as "corpusId", d.name, d.status, d.because, d.bytes, d.passages as "passageCount",
  d.embedded as "embeddedCount", d.created_at_s::float8 as "createdAtS", d.attributes`

const FILE = `f.id, f.name, f.purpose, f.bytes, f.created_at_s::float8 as "createdAtS"`

const BY_ID_OR_NAME = '(c.id = $2::text or c.name = $2::text) order by (c.id = $2::text) desc limit 1'

export const SQL = {
  createCorpus: `
    insert into corpus as c (tenant_id, id, name, embedder, dimensions, metadata, created_at_s)
    values ($1::text, $2::text, $3::text, $4::text, $5::int, $6::text::jsonb, $7::float8::bigint)
    on conflict (tenant_id, name) do nothing
    returning ${CORPUS}`,
  findCorpus: `select ${CORPUS} from corpus c where c.tenant_id = $1::text and ${BY_ID_OR_NAME}`,
  resolveCorpus: `select ${CORPUS_FACTS} from corpus c where c.tenant_id = $1::text and ${BY_ID_OR_NAME}`,
  updateCorpus: `
    update corpus c set name = coalesce($3::text, c.name), metadata = coalesce($4::text::jsonb, c.metadata)
    where c.tenant_id = $1::text and c.id = $2::text
    returning ${CORPUS}`,
  deleteCorpus: 'delete from corpus where tenant_id = $1::text and id = $2::text returning id',

  /** Returns a row that exists as it is; a failed or cancelled document is taken up again. */
  addDocument: `
    with added as (
      insert into document as d (tenant_id, corpus_id, id, name, hash, body, bytes, attributes, created_at_s)
      select $1::text, c.id, $3::text, $4::text, $5::text, $6::text, octet_length($6::text), $7::text::jsonb,
             $8::float8::bigint
      from corpus c where c.tenant_id = $1::text and c.id = $2::text
      on conflict (tenant_id, corpus_id, hash) do update
        set name = excluded.name,
            attributes = excluded.attributes,
            status = case when d.status in ('failed', 'cancelled') then 'in-progress' else d.status end
      returning ${DOCUMENT}, (xmax = 0) as "isNew"
    ), grown as (
      update corpus set bytes = bytes + (select bytes from added) where tenant_id = $1::text and id = $2::text
        and (select "isNew" from added)
    )
    select * from added`,
  findDocuments: `select ${DOCUMENT} from document d
    where d.tenant_id = $1::text and d.corpus_id = $2::text
      and d.id in (select jsonb_array_elements_text($3::text::jsonb))`,
  documentText: `select d.body from document d
    where d.tenant_id = $1::text and d.corpus_id = $2::text and d.id = $3::text`,
  updateDocument: `
    with changed as (
      update document d set attributes = $4::text::jsonb
      where d.tenant_id = $1::text and d.corpus_id = $2::text and d.id = $3::text
      returning ${DOCUMENT}
    ), newer as (
      update corpus set version = version + 1 where tenant_id = $1::text and id = $2::text and exists (select from changed)
    )
    select * from changed`,
  deleteDocument: `
    with lost as (
      select i.passage_id, i.terms from passage p join passage_index i on i.passage_id = p.id
      where p.tenant_id = $1::text and p.corpus_id = $2::text and p.document_id = $3::text
    ), fewer as (
      update term t set passages = t.passages - l.n
      from (select x.id, count(*)::int as n from lost, unnest(lost.terms) as x(id) group by 1) l
      where t.tenant_id = $1::text and t.corpus_id = $2::text and t.id = l.id
    ), gone as (
      delete from document d where d.tenant_id = $1::text and d.corpus_id = $2::text and d.id = $3::text
      returning d.bytes
    ), smaller as (
      update corpus set version = version + 1, deletions = deletions + 1,
        passages = passages - (select count(*)::int from lost), bytes = bytes - (select bytes from gone)
      where tenant_id = $1::text and id = $2::text and exists (select from gone)
    )
    select count(*)::int as n from gone`,
  finishDocument: `
    with finished as (
      update document d set status = $4::text, because = $5::text
      where d.tenant_id = $1::text and d.corpus_id = $2::text and d.id = $3::text returning d.id
    )
    update corpus set version = version + 1 where tenant_id = $1::text and id = $2::text and exists (select from finished)`,
  unfinished: `
    select d.tenant_id as "tenantId", d.corpus_id as "corpusId", d.id as "documentId", c.dimensions, d.is_split as "isSplit"
    from document d join corpus c on c.tenant_id = d.tenant_id and c.id = d.corpus_id
    where d.status = 'in-progress'
    order by d.is_split, row_number() over (partition by d.tenant_id order by d.ordinal), d.ordinal limit $1::int`,
  finishSplit: `update document d set is_split = true
    where d.tenant_id = $1::text and d.corpus_id = $2::text and d.id = $3::text`,

  addPassages: `
    with draft as (
      select * from jsonb_to_recordset($4::text::jsonb) as x(position int, body text, tokens int, terms text, weights text)
    ), added as (
      insert into passage (tenant_id, corpus_id, document_id, position, body, tokens)
      select $1::text, $2::text, $3::text, x.position, x.body, x.tokens from draft x
      where exists (select from document d where d.tenant_id = $1::text and d.corpus_id = $2::text and d.id = $3::text)
      on conflict (tenant_id, corpus_id, document_id, position) do nothing
      returning id, position
    ), indexed as (
      insert into passage_index (passage_id, tenant_id, corpus_id, document_id, terms, weights)
      select a.id, $1::text, $2::text, $3::text, x.terms::int[], x.weights::sparsevec
      from added a join draft x using (position)
      returning terms
    ), counted as (
      insert into term as t (tenant_id, corpus_id, id, passages)
      select $1::text, $2::text, x.id, count(*)::int from indexed, unnest(indexed.terms) as x(id) group by x.id order by x.id
      on conflict (tenant_id, corpus_id, id) do update set passages = t.passages + excluded.passages
    ), grown as (
      update corpus set version = version + 1, passages = passages + (select count(*)::int from added)
      where tenant_id = $1::text and id = $2::text
    )
    update document set passages = passages + (select count(*)::int from added)
    where tenant_id = $1::text and corpus_id = $2::text and id = $3::text`,
  unembedded: `
    select p.id::text as "passageId", p.body as text from passage p
    where p.tenant_id = $1::text and p.corpus_id = $2::text and p.document_id = $3::text
      and not exists (select from passage_vector v where v.tenant_id = $1::text and v.passage_id = p.id)
    order by p.position limit $4::int`,

  termFacts: `
    select c.passages as "passageCount",
      (select json_agg(json_build_array(t.id, t.passages)) from term t
        where t.tenant_id = $1::text and t.corpus_id = $2::text and t.id = any($3::int[]) and t.passages > 0) as terms
    from corpus c where c.tenant_id = $1::text and c.id = $2::text`,
  readPassages: `
    select p.id::text as id, p.document_id as "documentId", d.name as source, p.position, p.body as text, p.tokens,
           d.attributes
    from passage p
    join document d on d.tenant_id = p.tenant_id and d.corpus_id = p.corpus_id and d.id = p.document_id
    where p.tenant_id = $1::text and p.corpus_id = $2::text and p.id = any($3::bigint[])`,

  addFile: `
    insert into file (tenant_id, id, name, purpose, body, bytes, created_at_s)
    values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::int, $7::float8::bigint)`,
  findFiles: `select ${FILE} from file f
    where f.tenant_id = $1::text and f.id in (select jsonb_array_elements_text($2::text::jsonb))`,
  fileText: 'select f.body from file f where f.tenant_id = $1::text and f.id = $2::text',
  deleteTenant: `
    with corpora as (delete from corpus where tenant_id = $1::text)
    delete from file where tenant_id = $1::text`,
  deleteFile: 'delete from file where tenant_id = $1::text and id = $2::text returning id',
} as const

/** Lists are ordered by `ordinal`, which never repeats, so that pages neither skip nor repeat rows. */
type Order = 'asc' | 'desc'
const beyond = (order: Order): string => (order === 'asc' ? '>' : '<')

export const listCorporaSql = (order: Order): string => `
  select ${CORPUS} from corpus c where c.tenant_id = $1::text
    and ($2::text is null or c.ordinal ${beyond(order)}
      (select a.ordinal from corpus a where a.tenant_id = $1::text and a.id = $2::text))
  order by c.ordinal ${order} limit $3::int`

export const listDocumentsSql = (order: Order): string => `
  select ${DOCUMENT} from document d where d.tenant_id = $1::text and d.corpus_id = $2::text
    and ($3::text is null or d.ordinal ${beyond(order)}
      (select a.ordinal from document a where a.tenant_id = $1::text and a.corpus_id = $2::text and a.id = $3::text))
    and ($5::text is null or d.status = $5::text)
  order by d.ordinal ${order} limit $4::int`

export const listFilesSql = (order: Order): string => `
  select ${FILE} from file f where f.tenant_id = $1::text
    and ($2::text is null or f.ordinal ${beyond(order)}
      (select a.ordinal from file a where a.tenant_id = $1::text and a.id = $2::text))
    and ($4::text is null or f.purpose = $4::text)
  order by f.ordinal ${order} limit $3::int`

/**
 * BM25 as an inner product: the passage's factors (saturated, length-normalised frequencies) are stored as a sparse
 * vector, the question's factors (inverse document frequencies) come with the query. Only passages with one of the
 * rarer terms are scored, which the inverted list (GIN) finds.
 */
export const searchTermsSql = (filter: string): string => `
  select n.id::text as "passageId", -n.distance as score from (
    select i.passage_id as id, i.weights <#> $3::sparsevec as distance
    from passage_index i ${filterJoin(filter)}
    where i.tenant_id = $1::text and i.corpus_id = $2::text and i.terms && $4::int[]${filter}
    order by 2, 1 limit $5::int
  ) n`

/** The cast and the condition on `dimensions` must be those of the index of `vectorIndexSql`. */
export const searchVectorsSql = (dimensions: number, filter: string): string => `
  select n.id::text as "passageId", 1 - n.distance as score from (
    select i.passage_id as id, i.embedding::halfvec(${dimensions}) <=> $3::halfvec(${dimensions}) as distance
    from passage_vector i ${filterJoin(filter)}
    where i.tenant_id = $1::text and i.corpus_id = $2::text and i.dimensions = ${dimensions}${filter}
    order by 2 limit $4::int
  ) n`

/** Sets this many vectors at once, as pairs of parameters: a passage's id and its vector. */
export const setVectorsSql = (count: number): string => `
  with draft(id, vector) as (
    values ${Array.from({ length: count }, (_, i) => `($${3 + 2 * i}::bigint, $${4 + 2 * i}::halfvec)`).join(', ')}
  ), added as (
    insert into passage_vector (passage_id, tenant_id, corpus_id, document_id, dimensions, embedding)
    select p.id, p.tenant_id, p.corpus_id, p.document_id, vector_dims(x.vector), x.vector
    from draft x join passage p on p.id = x.id
    where p.tenant_id = $1::text and p.corpus_id = $2::text
    on conflict (passage_id) do nothing
    returning document_id
  )
  update document d set embedded = d.embedded + s.n
  from (select document_id, count(*)::int as n from added group by 1) s
  where d.tenant_id = $1::text and d.corpus_id = $2::text and d.id = s.document_id`

const filterJoin = (filter: string): string =>
  filter === ''
    ? ''
    : 'join document d on d.tenant_id = i.tenant_id and d.corpus_id = i.corpus_id and d.id = i.document_id'

/** Names the advisory lock of those who make an index of vectors: any number that no other lock of ours has. */
const INDEX_LOCK = 7_310_552

/**
 * The embedded database compares vectors of halves one number after the other, and an insertion with pgvector's
 * defaults (m 16, ef_construction 64) takes 16 to 18 ms of CPU there. With these it takes 10, and of the 32 nearest of
 * 8,000 vectors 99.8 % are still found (with m 8 and ef_construction 32: 6 ms and 96.5 %). A server keeps the
 * defaults: it is faster, and has more vectors.
 */
const EMBEDDED_GRAPH = 'with (m = 12, ef_construction = 40)'

/**
 * One HNSW index for each length of vectors in use. Asking first avoids the table's lock, which "if not exists" takes
 * even if the index is there. The advisory lock is for corpora that are created at once: "if not exists" lets two of
 * them make the same index, and one then fails.
 */
export const vectorIndexSql = (dimensions: number, isEmbedded: boolean): string => `
  do $index$ begin
    if to_regclass('passage_vector_${dimensions}') is null then
      perform pg_advisory_xact_lock(${INDEX_LOCK});
      create index if not exists passage_vector_${dimensions} on passage_vector
      using hnsw ((embedding::halfvec(${dimensions})) halfvec_cosine_ops) ${isEmbedded ? EMBEDDED_GRAPH : ''}
      where dimensions = ${dimensions};
    end if;
  end $index$`

/**
 * PGlite has no autovacuum: without this the planner takes every table for empty and scans it instead of using an index
 * (a search of 10,000 passages then takes 180 ms instead of 10). On a server it only happens sooner than by itself.
 */
export const REFRESH_STATISTICS = 'analyze corpus, document, passage, passage_index, passage_vector, term'
