import type { TSchema } from 'typebox'
import { BatchBody } from '../wire/batches.ts'
import {
  AttributesBody,
  DocumentsBody,
  SearchBody,
  VectorStoreBody,
  VectorStoreFileBody,
  VectorStoreFilesBody,
} from '../wire/vector-stores.ts'

/** The part of the description that is about files, batches and vector stores, from the schemas that check their bodies. */
export function corpusPaths(refusals: object): Record<string, object> {
  const operation = (
    operationId: string,
    summary: string,
    parameters: readonly object[],
    content?: object,
  ): object => ({
    operationId,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(content !== undefined && { requestBody: { required: true, content } }),
    responses: { 200: { description: 'OK' }, ...refusals },
  })
  const get = (id: string, summary: string, ...parameters: object[]) => operation(id, summary, parameters)
  const post = (id: string, summary: string, body: TSchema, ...parameters: object[]) =>
    operation(id, summary, parameters, { 'application/json': { schema: body } })
  return {
    '/v1/files': {
      get: get('listFiles', 'Your uploaded files.', ...PAGE, query('purpose')),
      post: operation(
        'uploadFile',
        'Uploads a text, Markdown or JSON Lines in UTF-8; for a batch, its lines.',
        [],
        UPLOAD,
      ),
    },
    '/v1/files/{id}': {
      get: get('retrieveFile', 'One file.', ID),
      delete: get('deleteFile', 'Deletes a file; documents made from it stay.', ID),
    },
    '/v1/files/{id}/content': { get: get('retrieveFileContent', 'The text of a file.', ID) },
    '/v1/batches': {
      get: get('listBatches', 'Your batches, the newest first.', ...PAGE),
      post: post('createBatch', 'Runs the lines of a file when there is room, within a day.', BatchBody),
    },
    '/v1/batches/{id}': { get: get('retrieveBatch', 'One batch, and how far it has got.', ID) },
    '/v1/batches/{id}/cancel': { post: operation('cancelBatch', 'Begins no further line of a batch.', [ID]) },
    '/v1/vector_stores': {
      get: get('listVectorStores', 'Your vector stores.', ...PAGE),
      post: post('createVectorStore', 'Makes a vector store, with files if some are named.', VectorStoreBody),
      delete: get(
        'deleteTenantData',
        'Deletes everything that is kept of your tenant, whose id must be given to confirm it.',
        { ...query('everything_of'), required: true },
      ),
    },
    '/v1/vector_stores/{id}': {
      get: get('retrieveVectorStore', 'One vector store, and how far its documents are indexed.', ID),
      post: post('updateVectorStore', 'Changes name and metadata.', VectorStoreBody, ID),
      delete: get('deleteVectorStore', 'Deletes a vector store with its documents.', ID),
    },
    '/v1/vector_stores/{id}/search': {
      post: post('searchVectorStore', 'Passages for a query, best first.', SearchBody, ID),
    },
    '/v1/vector_stores/{id}/documents': {
      post: post('addDocuments', 'Adds texts without uploading files first.', DocumentsBody, ID),
    },
    '/v1/vector_stores/{id}/files': {
      get: get('listVectorStoreFiles', 'Documents of a vector store.', ID, ...PAGE, query('filter')),
      post: post('addVectorStoreFile', 'Adds an uploaded file as a document.', VectorStoreFileBody, ID),
    },
    '/v1/vector_stores/{id}/files/{file_id}': {
      get: get('retrieveVectorStoreFile', 'One document, and whether it is indexed.', ID, FILE_ID),
      post: post('updateVectorStoreFile', 'Changes the attributes of a document.', AttributesBody, ID, FILE_ID),
      delete: get('deleteVectorStoreFile', 'Deletes a document.', ID, FILE_ID),
    },
    '/v1/vector_stores/{id}/files/{file_id}/content': {
      get: get('retrieveVectorStoreFileContent', 'The text of a document.', ID, FILE_ID),
    },
    '/v1/vector_stores/{id}/file_batches': {
      post: post('addVectorStoreFiles', 'Adds many uploaded files at once.', VectorStoreFilesBody, ID),
    },
    '/v1/vector_stores/{id}/file_batches/{batch_id}': {
      get: get('retrieveVectorStoreFiles', 'How far the indexing of such files has got.', ID, inPath('batch_id')),
    },
  }
}

const query = (name: string): object => ({ name, in: 'query', schema: { type: 'string' } })
const inPath = (name: string): object => ({ name, in: 'path', required: true, schema: { type: 'string' } })

const ID = inPath('id')
const FILE_ID = inPath('file_id')

/** OpenAI's paging. */
const PAGE = [
  { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100 } },
  { name: 'order', in: 'query', schema: { type: 'string', enum: ['asc', 'desc'] } },
  query('after'),
]

const UPLOAD = {
  'multipart/form-data': {
    schema: {
      type: 'object',
      required: ['file', 'purpose'],
      properties: { file: { type: 'string', format: 'binary' }, purpose: { type: 'string' } },
    },
  },
}
