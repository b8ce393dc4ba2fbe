// @ts-check
// Loaded into the pooler's process: collects garbage when asked, so that what is left is what is kept.
process.on('SIGUSR2', () => {
  globalThis.gc?.();
  globalThis.gc?.();
});
