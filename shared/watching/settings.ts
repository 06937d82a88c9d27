/** What may change while a watcher runs. */
export interface WatcherSettings {
  logLevel: string
  /** What follows the first change of an object within this time becomes one more event, in ms. */
  foldWithinMs: number
  /** How many events may be on their way at once. */
  concurrency: number
  /** Nothing is sent; what changes meanwhile waits, folded. */
  paused: boolean
}

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

type Reader<T> = (text: string) => T | undefined

const readers: { [K in keyof WatcherSettings]: { read: Reader<WatcherSettings[K]>; wanted: string } } = {
  logLevel: {
    read: (text) => logLevels.find((level) => level === text),
    wanted: `one of ${logLevels.join(', ')}`,
  },
  foldWithinMs: { read: integer(0, 60_000), wanted: 'a whole number from 0 to 60000' },
  concurrency: { read: integer(1, 1_000), wanted: 'a whole number from 1 to 1000' },
  paused: {
    read: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
    wanted: 'true or false',
  },
}

/**
 * Reads the settings in a ConfigMap's data (texts, by the names of {@link WatcherSettings}). What is absent is as in
 * `defaults`. What is not valid stays as it is in `current`, and `problems` names it; unknown keys are problems too, so
 * that a typo does not go unseen.
 */
export function settingsOf(
  data: Readonly<Record<string, string>>,
  defaults: WatcherSettings,
  current: WatcherSettings,
): { settings: WatcherSettings; problems: string[] } {
  const problems = Object.keys(data)
    .filter((key) => !Object.hasOwn(readers, key))
    .map((key) => `${key} is no setting; there are ${Object.keys(readers).join(', ')}`)
  function setting<K extends keyof WatcherSettings>(key: K): WatcherSettings[K] {
    const text = Object.hasOwn(data, key) ? data[key]?.trim() : undefined
    if (text === undefined) return defaults[key]
    const value = readers[key].read(text)
    if (value === undefined) problems.push(`${key} is not ${readers[key].wanted}`)
    return value ?? current[key]
  }
  const settings = {
    logLevel: setting('logLevel'),
    foldWithinMs: setting('foldWithinMs'),
    concurrency: setting('concurrency'),
    paused: setting('paused'),
  }
  return { settings, problems }
}

function integer(min: number, max: number): Reader<number> {
  return (text) => {
    const value = Number(text)
    return /^\d+$/.test(text) && value >= min && value <= max ? value : undefined
  }
}
