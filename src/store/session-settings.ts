/**
 * How every session searches. `ef_search` is how many neighbours HNSW keeps in sight: above the 32 that a hybrid search
 * asks for. When a filter (another tenant's passages, attributes) throws most of them away the scan goes on instead of
 * coming back with too few, up to a bound. A bitmap of the inverted list is cheaper than the planner thinks when
 * everything is in memory. Nothing here is worth compiling.
 */
export const SESSION_SETTINGS = `
set hnsw.ef_search = 40;
set hnsw.iterative_scan = relaxed_order;
set hnsw.max_scan_tuples = 20000;
set random_page_cost = 1.1;
set jit = off;
`
