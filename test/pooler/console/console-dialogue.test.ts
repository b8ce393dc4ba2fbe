// The console answers in both protocols, in order, and an error ends no more than the protocol says.
import { describe, expect, test } from 'vitest';
import { flush, sync } from '../../../src/wire/fixed-messages.js';
import {
  writeBind,
  writeClose,
  writeCopyData,
  writeDescribe,
  writeExecute,
  writeFunctionCall,
  writeParse,
  writeQuery,
} from '../../../src/wire/frontend-writers.js';
import { Target } from '../../../src/wire/message-types.js';
import type { MessageWriter } from '../../../src/wire/message-writer.js';
import { Console, extended, messages, query, ready, versionAnswer } from './console.js';
import { poolRecord } from './fake-pooler.js';

test('A simple query is answered with columns, rows, tag and readiness', () => {
  expect(new Console().ask(query('SHOW VERSION;'))).toEqual([...versionAnswer, ready]);
});

test('A simple query with several commands is answered one by one, and an error ends it', () => {
  const here = new Console();
  expect(here.ask(query('SHOW VERSION; SHOW STATE; KILL_CLIENT 5; SHOW VERSION'))).toEqual([
    ...versionAnswer,
    'columns key:25 value:25',
    'row active yes',
    'row paused no',
    'row suspended no',
    'done SHOW',
    'ERROR 42704 there is no client with the id 5',
    ready,
  ]);
});

test('A simple query that can not be read as a whole does nothing at all', () => {
  const here = new Console();
  expect(here.ask(query('KILL; SHOW POLS'))).toEqual([
    "ERROR 42601 unknown command SHOW 'POLS'; did you mean SHOW POOLS?",
    ready,
  ]);
  expect(here.pooler.told).toEqual([]);
});

test.each(['', ';', ' -- ping', '/* */ ;'])(
  'A simple query of nothing (%j) is answered with nothing',
  (text) => {
    expect(new Console().ask(query(text))).toEqual(['emptyQuery', ready]);
  },
);

test('A simple query for what it can not do gets an error, and the session goes on', () => {
  const here = new Console();
  expect(here.ask(query('select * from pg_class'))).toEqual([
    expect.stringMatching(/^ERROR 42601 unknown command/),
    ready,
  ]);
  expect(here.ask(messages((writer) => writeFunctionCall(writer, { functionId: 1 })))).toEqual([
    'ERROR 0A000 the console has no functions to call',
    ready,
  ]);
  expect(here.ask(query('SHOW VERSION'))).toEqual([...versionAnswer, ready]);
});

test('A simple query that tells something has a notice before its tag', () => {
  expect(new Console().ask(query('SHOW HELP'))).toEqual(['NOTICE 00000 Console usage', 'done SHOW', ready]);
  expect(new Console().ask(query('SET extra_float_digits = 3'))).toEqual([
    'NOTICE 00000 SET ignored: the console has no such setting of its own',
    'done SET',
    ready,
  ]);
});

test('A simple query that is too long gets an error, however it comes, and the next one is answered', () => {
  const here = new Console();
  const long = query(`SHOW VERSION -- ${'x'.repeat(70_000)}`);
  const answer = ['ERROR 54000 Query has 70022 bytes; the console takes up to 65536', ready];
  expect(here.ask(long)).toEqual(answer);
  for (const cut of [1, 5, 60_000]) {
    here.transport.come(long.subarray(0, cut));
    here.transport.come(long.subarray(cut, 69_000));
    expect(here.ask(Buffer.concat([long.subarray(69_000), query('SHOW VERSION')]))).toEqual([
      ...answer,
      ...versionAnswer,
      ready,
    ]);
  }
});

test('A simple query of a user of statsUsers is refused if it changes anything, and the session goes on', () => {
  const here = new Console('stats');
  expect(here.ask(query('PAUSE'))).toEqual([
    'ERROR 42501 PAUSE is for users in admin_users; this one may only look',
    ready,
  ]);
  expect(here.ask(query('SHOW VERSION'))).toEqual([...versionAnswer, ready]);
  expect([here.pooler.told, here.events]).toEqual([[], []]);
});

describe('The extended protocol', () => {
  const answer = ['parseComplete', 'bindComplete', ...versionAnswer, ready];

  test('The extended protocol shows what the simple one shows', () => {
    expect(new Console().ask(extended('SHOW VERSION'))).toEqual(answer);
  });

  test('The extended protocol describes a statement that was prepared, and runs it any number of times', () => {
    const here = new Console();
    expect(
      here.ask(
        messages((writer) => {
          writeParse(writer, { name: 's', text: 'show peers' });
          writeDescribe(writer, Target.statement, 's');
          writer.append(sync);
        }),
      ),
    ).toEqual(['parseComplete', 'parameters 0', 'columns peer_id:23 host:25 port:25 pool_size:23', ready]);
    const again = messages((writer) => {
      writeBind(writer, { statement: 's', portal: 'p' });
      writeExecute(writer, 'p');
      writeClose(writer, Target.portal, 'p');
      writer.append(sync);
    });
    for (let time = 0; time < 2; time++)
      expect(here.ask(again)).toEqual(['bindComplete', 'done SHOW', 'closeComplete', ready]);
  });

  test('The extended protocol has no columns for a command that shows nothing, and runs it once', () => {
    const here = new Console();
    expect(
      here.ask(
        messages((writer) => {
          writeParse(writer, { text: 'RECONNECT app' });
          writeDescribe(writer, Target.statement);
          writeBind(writer, {});
          writeDescribe(writer, Target.portal);
          writeExecute(writer);
          writeExecute(writer);
          writer.append(sync);
        }),
      ),
    ).toEqual([
      'parseComplete',
      'parameters 0',
      'noData',
      'bindComplete',
      'noData',
      'done RECONNECT',
      'done RECONNECT',
      ready,
    ]);
    expect(here.pooler.told).toEqual(['reconnect app']);
  });

  test('The extended protocol answers an empty statement as PostgreSQL does', () => {
    expect(new Console().ask(extended(''))).toEqual([
      'parseComplete',
      'bindComplete',
      'noData',
      'emptyQuery',
      ready,
    ]);
  });

  test('The extended protocol gives rows in parts, if asked to, and says whether there may be more', () => {
    const here = new Console();
    expect(
      here.ask(
        messages((writer) => {
          writeParse(writer, { text: 'SHOW STATE' });
          writeBind(writer, {});
          writeExecute(writer, '', 2);
          writeExecute(writer, '', 1);
          writeExecute(writer, '', 1);
          writer.append(sync);
        }),
      ),
    ).toEqual([
      'parseComplete',
      'bindComplete',
      'row active yes',
      'row paused no',
      'portalSuspended',
      'row suspended no',
      'portalSuspended',
      'done SHOW',
      ready,
    ]);
  });

  test('The extended protocol gives binary values to clients that ask for them', () => {
    const here = new Console();
    here.pooler.poolRecords = [
      poolRecord({ ledger: { limit: 65, pending: 66, live: 67, closing: 68, peak: 69 } }),
    ];
    const binary = here.ask(extended('SHOW LEDGER', [1]));
    expect(binary.slice(2)).toEqual([
      'columns database:25b user:25b limit:23b pending:23b live:23b closing:23b peak:23b',
      'row app alice \0\0\0A \0\0\0B \0\0\0C \0\0\0D \0\0\0E',
      'done SHOW',
      ready,
    ]);
    const mixed = here.ask(extended('SHOW LEDGER', [0, 0, 1, 0, 0, 0, 0]));
    expect(mixed[3]).toBe('row app alice \0\0\0A 66 67 68 69');
  });

  test('The extended protocol passes over everything after an error, up to the next Sync', () => {
    const here = new Console();
    expect(
      here.ask(
        messages((writer) => {
          writeParse(writer, { text: 'SHOW POLS' });
          writeBind(writer, {});
          writeExecute(writer);
          writeQuery(writer, 'RECONNECT');
          writer.append(flush);
          writer.append(sync);
          writer.append(extended('SHOW VERSION'));
        }),
      ),
    ).toEqual(["ERROR 42601 unknown command SHOW 'POLS'; did you mean SHOW POOLS?", ready, ...answer]);
    expect(here.pooler.told).toEqual([]);
  });

  const wrong: Record<string, readonly [string, (writer: MessageWriter) => void]> = {
    'a statement that is not there': [
      '26000 prepared statement "no" does not exist',
      (writer) => writeBind(writer, { statement: 'no' }),
    ],
    'a portal that is not there': [
      '34000 portal "no" does not exist',
      (writer) => writeExecute(writer, 'no'),
    ],
    'a name that is taken': [
      '42P05 prepared statement "s" already exists',
      (writer) => writeParse(writer, { name: 's', text: '' }),
    ],
    'a portal that is taken': [
      '42P03 portal "p" already exists',
      (writer) => writeBind(writer, { statement: 's', portal: 'p' }),
    ],
    'two commands in a statement': [
      '42601 a prepared statement can hold one command, not 2',
      (writer) => writeParse(writer, { text: 'SHOW STATE; SHOW STATE' }),
    ],
    'parameters that are declared': [
      '0A000 commands of the console take no parameters; 1 were declared',
      (writer) => writeParse(writer, { text: 'SHOW STATE', parameterTypes: [25] }),
    ],
    'parameters that are given': [
      '08P01 commands of the console take no parameters; 2 were given',
      (writer) => writeBind(writer, { statement: 's', values: ['a', null] }),
    ],
    'too many formats': [
      '08P01 3 result formats were given for 2 columns',
      (writer) => writeBind(writer, { statement: 's', resultFormats: [0, 1, 0] }),
    ],
    'a format that does not exist': [
      '22023 a result format is 0 for text or 1 for binary, not 7',
      (writer) => writeBind(writer, { statement: 's', resultFormats: [7] }),
    ],
    'a statement that is too long': [
      '54000 Parse has 70009 bytes; the console takes up to 65536',
      (writer) => writeParse(writer, { text: 'x'.repeat(70_000) }),
    ],
  };

  test.each(Object.keys(wrong))('The extended protocol refuses %s, and goes on after it', (what) => {
    const [error, write] = wrong[what] as (typeof wrong)[string];
    const here = new Console();
    const first = messages((writer) => {
      writeParse(writer, { name: 's', text: 'SHOW STATE' });
      writeBind(writer, { statement: 's', portal: 'p' });
      write(writer);
      writer.append(sync);
    });
    expect(here.ask(first)).toEqual(['parseComplete', 'bindComplete', `ERROR ${error}`, ready]);
    expect(here.ask(extended('SHOW VERSION'))).toEqual(answer);
  });

  test('The extended protocol forgets portals with the next Sync, and statements when they are closed', () => {
    const here = new Console();
    here.ask(
      messages((writer) => {
        writeParse(writer, { name: 's', text: 'SHOW STATE' });
        writeBind(writer, { statement: 's', portal: 'p' });
        writer.append(sync);
      }),
    );
    const then = (write: (writer: MessageWriter) => void) =>
      here.ask(Buffer.concat([messages(write), sync])).at(0);
    expect(then((writer) => writeExecute(writer, 'p'))).toBe('ERROR 34000 portal "p" does not exist');
    expect(then((writer) => writeClose(writer, Target.statement, 's'))).toBe('closeComplete');
    expect(then((writer) => writeDescribe(writer, Target.statement, 's'))).toBe(
      'ERROR 26000 prepared statement "s" does not exist',
    );
  });

  test('The extended protocol keeps a thousand statements of a client, and no more', () => {
    const here = new Console();
    const parse = (name: string) =>
      here.ask(
        Buffer.concat([messages((writer) => writeParse(writer, { name, text: 'SHOW STATE' })), sync]),
      )[0];
    for (let count = 0; count < 1_000; count++) expect(parse(`s${count}`)).toBe('parseComplete');
    expect(parse('one more')).toBe(
      'ERROR 53400 the console keeps 1000 prepared statements of a client, and no more',
    );
  });

  test('The extended protocol passes over what is left of a COPY', () => {
    const here = new Console();
    expect(here.ask(messages((writer) => writeCopyData(writer, Buffer.alloc(100_000))))).toEqual([]);
    expect(here.ask(query('SHOW VERSION'))).toEqual([...versionAnswer, ready]);
  });
});
