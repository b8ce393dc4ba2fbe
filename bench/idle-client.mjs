// @ts-check
// A database client that does nothing, in the shape pg.Pool expects: what is left to measure is the pool.
import { EventEmitter } from 'node:events';

export class IdleClient extends EventEmitter {
  _queryable = true;
  _ending = false;

  /** @param {(error?: Error) => void} [callback] */
  connect(callback) {
    if (callback === undefined) return Promise.resolve();
    process.nextTick(callback);
    return undefined;
  }

  /** @param {() => void} [callback] */
  end(callback) {
    this._ending = true;
    const finish = () => {
      this.emit('end');
      callback?.();
    };
    process.nextTick(finish);
    return callback === undefined ? Promise.resolve() : undefined;
  }

  ref() {}

  unref() {}

  getTransactionStatus() {
    return 'I';
  }
}
