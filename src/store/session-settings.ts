/**
 * Search settings of every session. `ef_search` is the number of neighbours that HNSW keeps: above the 32 that a hybrid
 * search asks for. When a filter (another tenant's passages, attributes) discards most of them, the scan goes on up to
 * a bound. A bitmap of the inverted list is cheaper than the planner assumes, because everything is in memory. JIT
 * compilation is off, because no statement is long enough for it.
 */
export const SESSION_SETTINGS = `
set hnsw.ef_search = 40;
set hnsw.iterative_scan = relaxed_order;
set hnsw.max_scan_tuples = 20000;
set random_page_cost = 1.1;
set jit = off;
`
