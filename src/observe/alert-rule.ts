/**
 * Alerts and recorded queries as data, kept beside the declarations of the metrics that they ask for. docs/prometheus-alerts.yml,
 * docs/prometheus-rules.yml and the dashboards are generated from them.
 */

/**
 * `expr` is PromQL that knows nothing of workers: the generator joins the series of a pooler's workers as each metric declares it, and
 * drops the labels that a selector fixes, so that `a{state="active"} / b` matches.
 */
export interface AlertRule {
  readonly alert: string;
  readonly severity: 'warning' | 'critical';
  /** How long it must hold, as Prometheus writes it; at once where it is left out. */
  readonly for?: string;
  readonly expr: string;
  /** True where each worker is an alert of its own. */
  readonly isOfWorker?: boolean;
  readonly summary: string;
  readonly description: string;
  /** Why the query is as it is. */
  readonly note?: string;
}

export interface AlertGroup {
  readonly name: string;
  readonly note?: string;
  readonly rules: readonly AlertRule[];
}

/** A query that Prometheus evaluates ahead, and that a dashboard shows. */
export interface RecordedQuery {
  /** Named by the rules of Prometheus: labels, metric, operation. */
  readonly record: string;
  /** As in an alert. */
  readonly expr: string;
  readonly help: string;
  readonly normal: string;
  readonly bad?: string;
  readonly action?: string;
}
