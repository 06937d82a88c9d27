import type { Hono } from 'hono'
import type { FunctionContext } from '../../functions/context.ts'
import { observed } from '../../functions/observed.ts'
import { notHandled, settled } from '../../shared/cloudevents/answers.ts'
import { receiver } from '../../shared/cloudevents/receiver.ts'
import { isOf, parseSubject } from '../../shared/cloudevents/subject.ts'
import { configMaps, type KubeObject, type Resource, type StoredObject } from '../../shared/kinds/object.ts'

/** A whole reconciler of one's own: a Website's page becomes a ConfigMap that goes with it. */

export const websites: Resource = {
  group: 'example.org',
  version: 'v1',
  kind: 'Website',
  plural: 'websites',
  namespaced: true,
}

export interface Website extends StoredObject {
  spec: { title: string }
}

/** What should exist. Pure, so that a table of cases tests it. */
export function pageOf({ metadata, spec }: Website): KubeObject {
  const { name, namespace = '', uid } = metadata
  const owner = { apiVersion: 'example.org/v1', kind: 'Website', name, uid, controller: true }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `${name}-page`, namespace, ownerReferences: [owner] },
    data: { 'index.html': `<h1>${spec.title}</h1>` },
  }
}

export function websiteApp(ctx: FunctionContext): Hono {
  return receiver({
    ...observed(ctx),
    work: async (event, { signal }) => {
      const subject = parseSubject(event.subject)
      if (!isOf(subject, websites)) return notHandled('Only Websites are taken here')
      const website = await ctx.client.get<Website>(websites, subject, { signal })
      if (!website || website.metadata.deletionTimestamp) return settled()
      await ctx.client.apply(configMaps, pageOf(website), { fieldManager: 'websites', force: true, signal })
      return settled()
    },
  })
}
