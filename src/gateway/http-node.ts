/**
 * Node's HTTP/1, without what Node loads beside it: an `import` of `node:http` reads every one of its exports, and one
 * of them (`WebSocket`) loads a second HTTP client that nobody here uses. That took 16 MB and 60 ms of every start.
 */
export const {
  Server: NodeHttpServer,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = process.getBuiltinModule('node:http')
