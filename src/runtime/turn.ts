/**
 * One callback of the event loop, with the tasks to run after it. `process.nextTick()` does the same, but makes Node
 * call into JavaScript once more, which costs about as much as a short callback itself. Where the start and end of a
 * callback are known, such tasks are kept here instead.
 */
import { soon } from './soon.js';

export interface Task {
  run(): void;
}

let isUnderWay = false;
const tasks: (Task | undefined)[] = [];
let count = 0;

/** Runs the task after the present callback, whether or not that one was begun here. */
export function afterTurn(task: Task): void {
  if (isUnderWay) tasks[count++] = task;
  else soon(run, task);
}

/** A callback begins. `endTurn()` must follow, whatever happens. */
export function beginTurn(): void {
  isUnderWay = true;
}

/** Runs the deferred tasks, and the ones that these defer. */
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
    // If one task throws, the others still run.
    for (; done < count; done++) soon(run, tasks[done] as Task);
    count = 0;
  }
}

function run(task: Task): void {
  task.run();
}
