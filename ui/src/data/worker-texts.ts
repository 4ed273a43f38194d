/** The scripts of workers, by name. Empty here: the build fills it for the one-file form of the pages, which has no other files. */
export const WORKER_TEXTS: Readonly<Record<string, string>> = {};
