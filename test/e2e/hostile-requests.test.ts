import { describeHostileRequests } from '../support/hostile-requests.ts'

/** A sixteenth of all pairs of a place and a value; `hostile-requests.long.test.ts` has all of them. */
describeHostileRequests(16)
