/** Help for each tile: its meaning, normal values, bad values, and what to do. */

interface Help {
  readonly what: string;
  readonly normal: string;
  readonly bad: string;
  readonly action: string;
}

export const helpTexts = {
  budget: {
    what: 'Server connections that may be open at once, and who holds them. The line at the top is the hard cap, the dashed line is what all need together.',
    normal: 'Held stays below the cap, or touches it for a while; exceeded is 0.',
    bad: 'Demand is far above the cap for minutes. Exceeded above 0 is a defect in Headgate.',
    action:
      'Shorten transactions of the user that needs most, change weights, or raise the limit if the server can take it.',
  },
  figures: {
    what: 'Numbers of the last 10 seconds, with the last 5 minutes as a line.',
    normal: 'Latency and waits are flat; no caller waits for longer than a transaction takes.',
    bad: 'Wait p99 rises while query p99 is flat: too few connections. Both rise: the database is slow.',
    action: 'Look at what binds, in the sentence above.',
  },
  shares: {
    what: 'What fairness gives each user of the budget (share), what it holds, and what it needs (demand). Shares follow weights.',
    normal: 'Users hold what they need, up to their share; more, where others do not need theirs.',
    bad: 'A user holds less than min(demand, share) for long: another user keeps its connections.',
    action: 'Look for pinned sessions and long transactions of those above their share.',
  },
  pools: {
    what: 'The busiest pools, one for each user and database: clients by state, waits and query times of the last 10 seconds.',
    normal: 'Wait p99 is below a few milliseconds.',
    bad: 'Waits of seconds, or clients that wait while connections are idle.',
    action:
      'The word under the name says what the pool lacks. Pause, reconnect or kill here if you are an operator.',
  },
  rebalances: {
    what: 'Each time that a share changed: who gained, who lost, and why.',
    normal: 'A few when load changes; none while it stays the same.',
    bad: 'Shares that swing back and forth every few seconds.',
    action: 'Look at the demand of the users named; give those that must not move a minimum.',
  },
  pins: {
    what: 'Clients that keep their server connection beyond a transaction, because something in their session can not move.',
    normal: 'None, or a few with LISTEN or advisory locks.',
    bad: 'As many as the pool is large: all other clients wait.',
    action:
      'Find the statement that the reason names. Use transaction-level locks, or a pool of its own for it.',
  },
  reservoir: {
    what: 'Connections kept ready ahead of need.',
    normal: 'Nearly as many ready as the target.',
    bad: 'Below the watermark for minutes, or callers that found none ready.',
    action: 'Let connections live longer, raise the rate, or lower the target.',
  },
  lives: {
    what: 'How old connections are, and when the present ones reach the end of their life.',
    normal: 'Ends are spread evenly.',
    bad: 'Many end at the same time: they all have to be opened again at once.',
    action: 'Raise the jitter of the lifetime.',
  },
  rates: {
    what: 'How fast connections to each server may be opened: what the bucket holds, and how it fills.',
    normal: 'Nearly full.',
    bad: 'Empty for long, or slowed down since the server refused.',
    action: 'Keep connections for longer; look for something else that opens connections to the same server.',
  },
  running: {
    what: 'Callers that have a connection now, the longest first.',
    normal: 'Milliseconds.',
    bad: 'Minutes: a transaction that was left open, or a query that needs an index.',
    action: 'Find the client by its application and address below. An operator can end it.',
  },
  statements: {
    what: 'Statements by the time all their calls took, or by their longest call; values left out.',
    normal: 'A few statements take most of the time.',
    bad: 'One takes nearly all of it, its longest call takes seconds, or its wait is longer than its time.',
    action: 'Look at its plan with EXPLAIN.',
  },
  errors: {
    what: 'Warnings and errors of the log, the same ones counted; and errors that callers were told, by class.',
    normal: 'None, or errors of the application (classes 22, 23, 42).',
    bad: 'Class 53 or 57, refused logins, connections that can not be opened.',
    action: 'Each code is explained in docs/errors.md.',
  },
  connections: {
    what: 'All clients and server connections. The search looks at every column.',
    normal: 'More clients than servers.',
    bad: 'Clients that wait for long; servers that stay "tested".',
    action: 'An operator can end a client here.',
  },
  fleet: {
    what: 'The processes of this pooler, and what other poolers share with it.',
    normal: 'All ready, no restarts, work spread over all.',
    bad: 'Restarts, or a coordinator that does not answer.',
    action: 'The log says why a process ended.',
  },
  audit: {
    what: 'Logins and actions on this page, also those that were refused.',
    normal: 'What you and your colleagues did.',
    bad: 'Failed logins that are not yours.',
    action: 'Change the password, and serve the page on the loopback only.',
  },
} satisfies Readonly<Record<string, Help>>;
