// @ts-check
// Runs the DSQL stand-in in a process of its own, so that its processor time is its own too. Ends with its parent.
import { startDsqlLocal } from '../../dist/dsql-local.js';

const { pid } = process;
const { host, port, region, accessKeyId, secretAccessKey, ca } = await startDsqlLocal();
process.send?.({ pid, host, port, region, accessKeyId, secretAccessKey, ca });
process.once('disconnect', () => process.exit());
