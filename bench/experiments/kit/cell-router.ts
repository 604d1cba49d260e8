import { fnv1a32, type Rng } from '../../../src/base/rng.ts'
import type { Gauge } from './cell-world.ts'

/**
 * Which cell? The global router's rule. It holds no queue and no state that must survive: what it knows are gauges a
 * second old and what it sent itself since. So there can be any number of routers.
 *
 *   random       any cell
 *   home         the tenant's own cell: by rendezvous hashing, so that a lost cell moves only its own tenants
 *   least        the cell that published the least load: with old news everybody runs to the same one
 *   two-choices  the less loaded of two of the tenant's three homes (Mitzenmacher, 2001), own sends counted in
 *   spill        the same, and who is refused there is asked for once more at the less loaded of two others
 *
 * Three homes for each tenant: what one tenant breaks, it breaks in three cells, and two tenants seldom share all of
 * them (shuffle sharding); and prefixes are found again.
 */
export const ROUTES = ['random', 'home', 'least', 'two-choices', 'spill'] as const
export type RouteName = (typeof ROUTES)[number]

const HOMES = 3

export class CellRouter {
  readonly #route: RouteName
  readonly #rng: Rng
  #gauges: readonly Gauge[] = []
  /** Sent since the gauges came. */
  #sent: number[] = []
  readonly #homes = new Map<string, readonly number[]>()
  readonly #cells: number

  constructor(route: RouteName, cells: number, rng: Rng) {
    this.#route = route
    this.#cells = cells
    this.#rng = rng
  }

  /** `sendCost`: what one of its requests adds to a cell's load. */
  published(gauges: readonly Gauge[]): void {
    this.#gauges = gauges
    this.#sent = gauges.map(() => 0)
  }

  first(tenantId: string, sendLoad: number): number {
    const homes = this.#homesOf(tenantId)
    const chosen = this.#firstOf(homes)
    this.#sent[chosen] = (this.#sent[chosen] ?? 0) + sendLoad
    return chosen
  }

  /** Where else; undefined when it is not asked again. */
  second(refusedBy: number, sendLoad: number): number | undefined {
    if (this.#route !== 'spill') return undefined
    const others = this.#up(Array.from({ length: this.#cells }, (_, i) => i)).filter((cell) => cell !== refusedBy)
    if (others.length === 0) return undefined
    const chosen = this.#lighterOfTwo(others)
    this.#sent[chosen] = (this.#sent[chosen] ?? 0) + sendLoad
    return chosen
  }

  #firstOf(homes: readonly number[]): number {
    const all = Array.from({ length: this.#cells }, (_, i) => i)
    switch (this.#route) {
      case 'random':
        return this.#any(this.#up(all))
      case 'home':
        return this.#up(homes)[0] ?? this.#any(this.#up(all))
      case 'least':
        return this.#up(all).reduce((best, cell) => (this.#published(cell) < this.#published(best) ? cell : best))
      case 'two-choices':
      case 'spill': {
        const up = this.#up(homes)
        return up.length > 0 ? this.#lighterOfTwo(up) : this.#lighterOfTwo(this.#up(all))
      }
    }
  }

  #lighterOfTwo(cells: readonly number[]): number {
    const a = this.#any(cells)
    const b = this.#any(cells)
    return this.#loadOf(b) < this.#loadOf(a) ? b : a
  }

  #any(cells: readonly number[]): number {
    return cells[this.#rng.below(cells.length)]!
  }

  /** As far as is known; when nobody seems to be there, all are tried. */
  #up(cells: readonly number[]): readonly number[] {
    const up = cells.filter((cell) => this.#gauges[cell]?.isUp !== false)
    return up.length === 0 ? cells : up
  }

  #published(cell: number): number {
    return this.#gauges[cell]?.load ?? 0
  }

  #loadOf(cell: number): number {
    return this.#published(cell) + (this.#sent[cell] ?? 0)
  }

  /** Rendezvous hashing: every cell draws a number for the tenant, the highest are its homes. */
  #homesOf(tenantId: string): readonly number[] {
    let homes = this.#homes.get(tenantId)
    if (homes === undefined) {
      const drawn = Array.from({ length: this.#cells }, (_, cell) => ({
        cell,
        draw: fnv1a32(`${cell}/${tenantId}/${cell}`),
      }))
      homes = drawn
        .sort((a, b) => b.draw - a.draw || a.cell - b.cell)
        .slice(0, HOMES)
        .map(({ cell }) => cell)
      this.#homes.set(tenantId, homes)
    }
    return homes
  }
}
