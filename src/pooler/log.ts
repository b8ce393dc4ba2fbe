/** What the pooler tells whoever keeps its log. No text and no detail has anything secret in it. */

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export type LogDetails = Readonly<Record<string, string | number | boolean | undefined>>;

export type PoolerLog = (level: LogLevel, message: string, details?: LogDetails) => void;

export const noLog: PoolerLog = () => {};
