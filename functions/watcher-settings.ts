import type { Clock } from '../shared/clock.ts'
import type { KubeClient } from '../shared/kube/client.ts'
import type { Logger } from '../shared/log.ts'
import { configMapStore } from '../shared/runtime/config-maps.ts'
import { settingsOf, type WatcherSettings } from '../shared/watching/settings.ts'

export interface LiveSettingsOptions {
  client: KubeClient
  clock: Clock
  log: Logger
  /** The ConfigMap; it need not exist. */
  namespace: string
  configMap: string
  /** What holds where it says nothing. */
  defaults: WatcherSettings
  /** Told when the settings have changed. */
  onChange(settings: WatcherSettings): void
}

export interface LiveSettings {
  now(): WatcherSettings
  /** Follows the ConfigMap until `signal` is aborted. Never throws: during an outage what was known last holds. */
  run(signal: AbortSignal): Promise<void>
}

/** The settings as a ConfigMap has them now. A value that is not valid is logged once for each version of it. */
export function liveSettings(options: LiveSettingsOptions): LiveSettings {
  const { client, clock, log, namespace, configMap, defaults } = options
  const store = configMapStore({ client, clock, log, namespace, names: [configMap] })
  let current = defaults
  store.subscribe(() => {
    const { settings, problems } = settingsOf(store.get(configMap)?.data ?? {}, defaults, current)
    if (problems.length > 0)
      log.warn({ configMap: `${namespace}/${configMap}`, problems }, 'settings not taken')
    if (JSON.stringify(settings) === JSON.stringify(current)) return
    log.info({ configMap: `${namespace}/${configMap}`, settings }, 'settings changed')
    current = settings
    options.onChange(settings)
  })
  return { now: () => current, run: (signal) => store.run(signal) }
}
