/** Makes docs/results.md from bench/results/: node bench/experiments/write-results-page.ts */
import { writeResultsPage } from './kit/results-page.ts'

writeResultsPage()
