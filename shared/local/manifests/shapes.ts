import { z } from 'zod'

/** The shapes of Knative's objects as far as the local Knative reads them; other fields are let be. */

const metadata = z.object({ name: z.string(), namespace: z.string() })
const ref = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  namespace: z.string().optional(),
})
const destination = z.object({ ref: ref.optional(), uri: z.string().optional() })
const delivery = z.looseObject({ deadLetterSink: destination.optional() })
const attributes = z.record(z.string(), z.string())

export const kustomizationShape = z.object({ resources: z.array(z.string()) })

export const brokerShape = z.object({
  metadata,
  spec: z.object({ delivery: delivery.optional() }).optional(),
})

/** `filters` is read by its own reader. */
export const triggerShape = z.object({
  metadata,
  spec: z.object({
    broker: z.string(),
    filter: z.object({ attributes: attributes.default({}) }).optional(),
    filters: z.array(z.looseObject({})).default([]),
    subscriber: destination,
    delivery: delivery.optional(),
  }),
})

export const pingShape = z.object({
  metadata,
  spec: z.object({
    schedule: z.string().default('* * * * *'),
    timezone: z.string().default('UTC'),
    contentType: z.string().optional(),
    data: z.string().optional(),
    dataBase64: z.string().optional(),
    ceOverrides: z.object({ extensions: attributes.optional() }).optional(),
    sink: destination,
  }),
})

/** A SinkBinding whose subject is named; one that selects by label is refused. */
export const sinkBindingShape = z.object({ metadata, spec: z.object({ subject: ref, sink: destination }) })

const probe = z.object({ httpGet: z.object({ path: z.string().default('/') }).optional() })

const container = z.object({
  args: z.array(z.string()).min(1, 'must name the function to run'),
  env: z
    .array(
      z.object({
        name: z.string(),
        value: z.string().optional(),
        valueFrom: z.object({ fieldRef: z.object({ fieldPath: z.string() }) }).optional(),
      }),
    )
    .default([]),
  readinessProbe: probe.optional(),
})

export const serviceShape = z.object({
  metadata,
  spec: z.object({
    template: z.object({
      metadata: z.object({ annotations: attributes.default({}) }).default({ annotations: {} }),
      spec: z.object({
        serviceAccountName: z.string().default('default'),
        // 0 is without limit.
        containerConcurrency: z.int().min(0).default(0),
        timeoutSeconds: z.number().positive().default(300),
        containers: z.tuple([container], 'a function has one container'),
      }),
    }),
  }),
})

export const deploymentShape = z.object({
  metadata,
  spec: z.object({
    template: z.object({
      spec: z.object({
        serviceAccountName: z.string().default('default'),
        terminationGracePeriodSeconds: z.number().default(30),
        containers: z.tuple([container], 'a process has one container'),
      }),
    }),
  }),
})

/** Checks a value's shape. Throws an Error that names `what` and the first field that is wrong. */
export function check<T>(what: string, shape: z.ZodType<T>, value: unknown): T {
  const result = shape.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new Error(`${what}: ${issue?.path.join('.')}: ${issue?.message}`)
}
