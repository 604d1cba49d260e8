import { admissionCommands } from './admission.ts'
import { auditCommands } from './audit.ts'
import { backupCommand, restoreCommand } from './backup.ts'
import { benchCommand } from './bench.ts'
import type { Command } from './command.ts'
import { configCheckCommand } from './config-check.ts'
import { configPrintCommand } from './config-print.ts'
import { corpusAddCommand } from './corpus-add.ts'
import { corpusDeleteCommand, corpusListCommand, corpusSearchCommand } from './corpus-manage.ts'
import { demoCommand } from './demo.ts'
import { engineCommand } from './engine.ts'
import { engineFitCommand } from './engine-fit.ts'
import { engineLearnedCommand } from './engine-learned.ts'
import { engineValidateCommand } from './engine-validate.ts'
import { explainCommand } from './explain.ts'
import { jobsCancelCommand, jobsListCommand, jobsSubmitCommand, jobsWatchCommand } from './jobs.ts'
import { keysCreateCommand } from './keys-create.ts'
import { meCommand } from './me.ts'
import {
  modelsAddCommand,
  modelsHistoryCommand,
  modelsListCommand,
  modelsRemoveCommand,
  modelsShowCommand,
} from './models.ts'
import { modelsImportMlflowCommand } from './models-import-mlflow.ts'
import { modelsImportSagemakerCommand } from './models-import-sagemaker.ts'
import { planCommand } from './plan.ts'
import { recordCommand } from './record.ts'
import { refusals } from './refusals.ts'
import { reload } from './reload.ts'
import { replicasAdd, replicasDrainCommand, replicasRemove, replicasUndrainCommand } from './replicas.ts'
import { restartCommand } from './restart.ts'
import { retrievalCommand } from './retrieval.ts'
import { rolloutCommands } from './rollout.ts'
import { screenCommand } from './screen.ts'
import { serveCommand } from './serve.ts'
import { simulateCommand } from './simulate.ts'
import { tenancyCommands } from './tenancy.ts'
import { top } from './top.ts'
import { usageCommand } from './usage.ts'
import { usageReportCommands } from './usage-reports.ts'

/** Every command, in the order in which the help lists them. */
export const commands: readonly Command[] = [
  serveCommand,
  simulateCommand,
  planCommand,
  benchCommand,
  demoCommand,
  explainCommand,
  refusals,
  top,
  meCommand,
  usageCommand,
  ...usageReportCommands,
  recordCommand,
  engineCommand,
  engineFitCommand,
  engineLearnedCommand,
  engineValidateCommand,
  retrievalCommand,
  jobsSubmitCommand,
  jobsListCommand,
  jobsWatchCommand,
  jobsCancelCommand,
  corpusAddCommand,
  corpusListCommand,
  corpusSearchCommand,
  corpusDeleteCommand,
  modelsListCommand,
  modelsShowCommand,
  modelsAddCommand,
  modelsRemoveCommand,
  modelsHistoryCommand,
  modelsImportMlflowCommand,
  modelsImportSagemakerCommand,
  replicasAdd,
  replicasRemove,
  replicasDrainCommand,
  replicasUndrainCommand,
  ...rolloutCommands,
  reload,
  restartCommand,
  screenCommand,
  configCheckCommand,
  configPrintCommand,
  keysCreateCommand,
  backupCommand,
  restoreCommand,
  ...tenancyCommands,
  ...admissionCommands,
  ...auditCommands,
]
