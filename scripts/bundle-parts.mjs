// @ts-check
// What `Pool` adds to a bundle, and how much of it goes without each part that a program can do without.
// npm run build && node scripts/bundle-parts.mjs
import { bundlePool, optionalParts, sizeOf } from './lib/pool-bundle.mjs';

const external = ['pg'];
const whole = sizeOf(await bundlePool({ external }));
const withPg = sizeOf(await bundlePool({ external: ['pg-native'] }));
console.log(`${withPg} Pool with pg\n${whole} Pool`);
for (const [part, without] of Object.entries(optionalParts))
  console.log(`${sizeOf(await bundlePool({ external, without })) - whole} ${part}`);
const rest = sizeOf(await bundlePool({ external, without: Object.values(optionalParts).flat() }));
console.log(`${rest} Pool without any of these\n${rest + withPg - whole} the same with pg`);
