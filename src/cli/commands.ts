import { bench } from './bench.ts'
import type { Command } from './command.ts'
import { configCheck } from './config-check.ts'
import { configPrint } from './config-print.ts'
import { corpusAdd } from './corpus-add.ts'
import { corpusDelete, corpusList, corpusSearch } from './corpus-manage.ts'
import { demo } from './demo.ts'
import { engine } from './engine.ts'
import { engineFit } from './engine-fit.ts'
import { engineValidate } from './engine-validate.ts'
import { explain } from './explain.ts'
import { keysCreate } from './keys-create.ts'
import { modelsAdd, modelsHistory, modelsList, modelsRemove, modelsShow } from './models.ts'
import { modelsImportMlflow } from './models-import-mlflow.ts'
import { refusals } from './refusals.ts'
import { reload } from './reload.ts'
import { replicasAdd, replicasDrain, replicasRemove, replicasUndrain } from './replicas.ts'
import { retrieval } from './retrieval.ts'
import { rolloutCommands } from './rollout.ts'
import { serve } from './serve.ts'
import { simulate } from './simulate.ts'

/** Every command, in the order in which the help lists them. */
export const commands: readonly Command[] = [
  serve,
  simulate,
  bench,
  demo,
  explain,
  refusals,
  engine,
  engineFit,
  engineValidate,
  retrieval,
  corpusAdd,
  corpusList,
  corpusSearch,
  corpusDelete,
  modelsList,
  modelsShow,
  modelsAdd,
  modelsRemove,
  modelsHistory,
  modelsImportMlflow,
  replicasAdd,
  replicasRemove,
  replicasDrain,
  replicasUndrain,
  ...rolloutCommands,
  reload,
  configCheck,
  configPrint,
  keysCreate,
]
