/**
 * Answers of messages that came from a queue. A row is written before the answer is sent, so that a message that is
 * delivered again is not run again; its text goes when the answer is sent.
 */
export const MESSAGES_SCHEMA = `
create table queue_message (
  tenant_id text collate "C" not null,
  queue_id text collate "C" not null,
  id text collate "C" not null,
  document text,
  created_at_ms bigint not null,
  removed_at_ms bigint,
  primary key (tenant_id, queue_id, id)
);
create index queue_message_by_time on queue_message (created_at_ms);
`
