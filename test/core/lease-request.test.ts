// The one request that a holder has at a budget.
import { expect, test } from 'vitest';
import { LeaseRequest } from '../../src/core/lease-request.js';
import type { LeaseAnswer, LeaseHolder } from '../../src/core/leases.js';

const holder: LeaseHolder = {
  name: 'orders',
  leasesAvailable: () => {},
  leasesGranted: () => 0,
  leasesRefused: () => {},
  leasesLost: () => {},
};
const aWait = { reason: new Error('none left') };

function requestWith(answers: LeaseAnswer[]): { request: LeaseRequest; left: LeaseAnswer[] } {
  const acquire = (): LeaseAnswer => answers.shift() ?? new Error('was asked too often');
  return { request: new LeaseRequest({ acquire, release: () => {} }, holder), left: answers };
}

test('a request that is granted at once leaves nothing behind', () => {
  const { request } = requestWith(['granted', 'granted']);
  expect([request.ask(), request.ask()]).toEqual([true, true]);
});

test('a request that is being answered is not made again', () => {
  const { request, left } = requestWith(['asking', 'granted']);
  expect([request.ask(), request.ask()]).toEqual([false, false]);
  request.released();
  expect([request.ask(), left.length]).toEqual([false, 1]);
  request.answered();
  expect(request.ask()).toBe(true);
});

test('a request that waits is told of once, and made again only after a lease was released', () => {
  const { request, left } = requestWith([aWait, aWait, 'granted']);
  expect([request.ask(), request.ask()]).toEqual([aWait, false]);
  request.released();
  expect([request.ask(), request.ask(), left.length]).toEqual([false, false, 1]);
  request.released();
  expect(request.ask()).toBe(true);
});

test('a lease that was released before the request began to wait is no reason to ask again', () => {
  const { request, left } = requestWith(['asking', 'granted']);
  request.ask();
  request.released();
  request.delayed();
  expect([request.ask(), left.length]).toEqual([false, 1]);
});

test('a request that was refused can be made again at once', () => {
  const { request } = requestWith([new Error('down'), 'granted']);
  expect([request.ask(), request.ask()]).toEqual([new Error('down'), true]);
});
