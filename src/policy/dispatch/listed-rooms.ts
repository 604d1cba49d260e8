import type { ReplicaRoom } from './replica-room.ts'

/**
 * Which rooms are open, and which of them are idle, without a search? A room knows its place in each list, so it joins
 * and leaves in one step: the last one takes its place. The order of a list is therefore no order of anything.
 */
export function list(rooms: ReplicaRoom[], at: 'openIndex' | 'idleIndex', room: ReplicaRoom, isIn: boolean): void {
  if (isIn === room[at] >= 0) return
  if (isIn) {
    room[at] = rooms.push(room) - 1
    return
  }
  const last = rooms.pop() as ReplicaRoom
  if (last !== room) {
    rooms[room[at]] = last
    last[at] = room[at]
  }
  room[at] = -1
}
