import manifest from '../package.json' with { type: 'json' }

/** This project's version, as its package says. */
export const version: string = manifest.version
