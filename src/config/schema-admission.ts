import { Type } from '../base/schema.ts'
import { ADMISSION_DEFAULTS } from '../policy/admission/admission.ts'
import { RETURN_SLOT_DEFAULTS } from '../policy/admission/return-slots.ts'
import { section } from './schema-fields.ts'

/** Which requests are taken, and what is kept for those who were told to come back. */
export const AdmissionSchema = section(
  {
    safetyMargin: Type.Number({
      default: ADMISSION_DEFAULTS.safetyMarginRatio,
      minimum: 0,
      exclusiveMaximum: 1,
      env: 'ADMISSION_SAFETY_MARGIN',
      description: 'Share of a deadline that admission keeps in reserve; calibration may raise it, never lower it.',
    }),
    returnShare: Type.Number({
      default: RETURN_SLOT_DEFAULTS.share,
      minimum: 0,
      maximum: 0.9,
      description:
        'Share of what a tenant is served that is kept for its clients that were told when to come back and do. With 0 the time is a prediction that nobody keeps.',
    }),
    mode: Type.Enum(['enforce', 'observe'], {
      default: 'enforce',
      description:
        'What admission does with its decisions. `enforce` refuses requests. `observe` only journals what it would refuse: a way to try Spillway on live traffic.',
    }),
  },
  'Admission: which requests are taken.',
)
