/**
 * One callback of the event loop, with what is to be done when it is over. `process.nextTick()` does the same, but has Node
 * call into JavaScript once more, which costs about as much as a short callback itself. Where it is known when a callback
 * begins and ends, such tasks are kept here in its place.
 */
import process from 'node:process';

/** Node's own: where a test has replaced it, turns still end. */
const nextTick = process.nextTick;

export interface Task {
  run(): void;
}

let isUnderWay = false;
const tasks: (Task | undefined)[] = [];
let count = 0;

/** Runs the task after the present callback, whether or not that one was begun here. */
export function afterTurn(task: Task): void {
  if (isUnderWay) tasks[count++] = task;
  else nextTick(run, task);
}

/** A callback begins. `endTurn()` must follow, whatever happens. */
export function beginTurn(): void {
  isUnderWay = true;
}

/** Runs what was put off, and what that puts off in turn. */
export function endTurn(): void {
  let done = 0;
  try {
    while (done < count) {
      const task = tasks[done] as Task;
      tasks[done++] = undefined;
      task.run();
    }
  } finally {
    isUnderWay = false;
    // One of them has thrown, which is no reason for the others not to run.
    for (; done < count; done++) nextTick(run, tasks[done]);
    count = 0;
  }
}

function run(task: Task): void {
  task.run();
}
