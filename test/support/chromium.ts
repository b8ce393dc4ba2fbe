// A Chromium that is on this machine. Where there is none, tests of the page are skipped, and say so.
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const places = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

export const chromiumPath = places.find((path) => path !== undefined && path !== '' && existsSync(path));

if (chromiumPath === undefined)
  console.warn('SKIPPED: no Chromium was found (set CHROMIUM_PATH), so the page is not tested in a browser.');

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath as string,
    headless: true,
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  });
}
