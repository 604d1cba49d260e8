import type { RoomView } from './room-view.ts'

/**
 * Where does a prompt go whose beginning nobody is known to hold? With several gateways over one fleet each would choose a
 * replica of its own, and as many replicas would read it. So it has a home: of the replicas that are no busier than the
 * mean, the one with the highest hash of (name of the first blocks, replica). Gateways with about the same news find the same one
 * without a word (rendezvous hashing: Thaler and Ravishankar, 1998), and a replica that comes or goes moves only its own.
 *
 * Names are salted with a secret, so no client can choose prompts that meet at one replica. Deliberately the mean, not the
 * median: among idle replicas all count, and then every gateway agrees.
 */
const HOME_DEPTH = 8

export function prefixHome(hashes: readonly number[], rooms: readonly RoomView[]): RoomView | undefined {
  const name = hashes[Math.min(HOME_DEPTH, hashes.length) - 1]
  if (name === undefined || rooms.length < 2) return undefined
  let sumUs = 0
  for (let i = 0; i < rooms.length; i++) sumUs += (rooms[i] as RoomView).ledger.engineUs
  const meanUs = sumUs / rooms.length
  let home: RoomView | undefined
  let highest = -1
  for (let i = 0; i < rooms.length; i++) {
    const room = rooms[i] as RoomView
    // A microsecond, because rounding must not leave nobody where all are equally busy.
    if (room.ledger.engineUs - meanUs > 1) continue
    const score = scoreOf(name, room.replica.id)
    if (score < highest || (score === highest && home !== undefined && home.replica.id < room.replica.id)) continue
    home = room
    highest = score
  }
  return home
}

/** The same at every gateway: of the name and the replica's id, and of nothing else. FNV-1a, then MurmurHash3's finalizer. */
function scoreOf(name: number, replicaId: string): number {
  let h = (name ^ Math.imul(Math.floor(name / 2 ** 32), 0x9e3779b1) ^ 0x811c9dc5) | 0
  for (let i = 0; i < replicaId.length; i++) h = Math.imul(h ^ replicaId.charCodeAt(i), 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
