/** The processes of the pooler, and what it shares with others. */
import type { FleetRecord, WorkerRecord } from '../../src/dashboard/observation.ts';
import { Card, Table } from './card.tsx';
import { ago, bytes, count, ms } from './format.ts';
import { memo } from './memo.tsx';

interface FleetProps {
  readonly fleet: readonly FleetRecord[];
  readonly workers: readonly WorkerRecord[];
  readonly at: number;
}

export const FleetCard = memo(({ fleet, workers, at }: FleetProps) => (
  <Card id="fleet" title="Processes and fleet">
    {workers.length > 0 && (
      <Table
        label="Processes"
        heads={[
          ['Worker'],
          ['State'],
          ['Started'],
          ['Clients', true],
          ['Servers', true],
          ['Processor', true],
          ['Memory', true],
          ['Restarts', true],
        ]}
      >
        {workers.map((worker) => (
          <tr key={worker.number}>
            <th scope="row">
              {worker.number} <span class="muted">pid {worker.processId}</span>
            </th>
            <td>
              <span class={`tag ${worker.state === 'ready' ? 'good' : 'busy'}`}>{worker.state}</span>
            </td>
            <td>{ago(worker.startedAt, at)}</td>
            <td class="number">{count(worker.clients)}</td>
            <td class="number">{count(worker.servers)}</td>
            <td class="number">{ms(worker.cpuMs)}</td>
            <td class="number">{bytes(worker.memoryBytes)}</td>
            <td class={`number ${worker.restarts > 0 ? 'busy' : ''}`}>{count(worker.restarts)}</td>
          </tr>
        ))}
      </Table>
    )}
    {fleet.length > 0 && (
      <Table
        label="Fleet"
        heads={[
          ['Server'],
          ['Coordinator'],
          ['Instances', true],
          ['All hold', true],
          ['Leased here', true],
          ['In use here', true],
          ['Waiting', true],
        ]}
      >
        {fleet.map((one) => (
          <tr key={one.server}>
            <th scope="row">{one.server}</th>
            <td>
              <span class={`tag ${one.state === 'ok' || one.state === 'healthy' ? 'good' : 'busy'}`}>
                {one.state}
              </span>
            </td>
            <td class="number">{count(one.instances)}</td>
            <td class="number">
              {count(one.active)} <span class="muted">/ {count(one.limit)}</span>
            </td>
            <td class="number">{count(one.owned)}</td>
            <td class="number">{count(one.held)}</td>
            <td class="number">{count(one.waiting)}</td>
          </tr>
        ))}
      </Table>
    )}
    {fleet.length === 0 && <p class="muted card-note">Shares nothing with poolers on other machines.</p>}
  </Card>
));
