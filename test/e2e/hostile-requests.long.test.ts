import { describeHostileRequests } from '../support/hostile-requests.ts'

/** Every hostile value in every place. */
describeHostileRequests(1)
