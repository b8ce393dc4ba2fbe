// @ts-check
// `npm run build`: compiles src/ into dist/, and web/ into dist/page/.
import { BootstrapError, build, checkNode, command, ensureDependencies } from './lib/bootstrap.mjs';

await command(() => {
  checkNode();
  ensureDependencies();
  const { good, output } = build();
  if (!good) throw new BootstrapError(`the source does not compile:\n${output}`);
});
