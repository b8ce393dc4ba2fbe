/** Log interface of the pooler. No text and no detail contains a secret. */

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export type LogDetails = Readonly<Record<string, string | number | boolean | undefined>>;

export type PoolerLog = (level: LogLevel, message: string, details?: LogDetails) => void;

export const noLog: PoolerLog = () => {};
