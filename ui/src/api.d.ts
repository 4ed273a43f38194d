// Made by scripts/ui_types.py from the OpenAPI document: run `make ui-types`. Do not edit.

export interface AcceptedCommand {
  accepted: CommandKind;
  run: Run;
  command: string;
}

export type AlarmKind = "none" | "systemd" | "cloud_tasks";

export interface Approvals {
  approvals: (PendingApproval)[];
}

/** `waits_for` names the external jobs that the attempt waits for. */
export interface Attempt {
  ran_in: RanIn | null;
  task: string;
  index: number | null;
  attempt: number;
  external_name: string | null;
  waits_for: (string)[] | null;
  error: string | null;
  status: AttemptStatus;
  executor: string;
  dispatched_at: string;
  pool: string | null;
  started_at: string | null;
  finished_at: string | null;
  exit_code: number | null;
  failure: Failure | null;
  closing: GiveUp | null;
  closing_since: string | null;
  seq: number;
  seen_at: string | null;
  group: GroupPlace | null;
  metrics: Record<string, number> | null;
}

export interface AttemptPage {
  attempts: (Attempt)[];
  cursor: string | null;
}

export type AttemptStatus = "dispatched" | "running" | "success" | "failed" | "lost" | "timed_out" | "cancelled";

export interface AuditEntry {
  detail: unknown;
  at: string;
  by: string;
  action: string;
  subject: string;
  id: string;
  token: string | null;
  address: string | null;
}

export interface AuditPage {
  entries: (AuditEntry)[];
  cursor: string | null;
}

/** `times` and `plan` are set for a dry run only. */
export interface Backfill {
  created: number;
  total: number;
  times: (string)[] | null;
  plan: (BackfillTime)[] | null;
}

export interface BackfillBody {
  from: string;
  to: string;
  params?: Record<string, unknown>;
  dry_run?: boolean;
}

/** A time that would get a new run, or that has one. */
export interface BackfillTime {
  time: string;
  state: "new" | "exists";
  run: string | null;
  status: RunStatus | null;
}

export interface BrokenLocation {
  name: string;
  code: string | null;
  error: string;
}

export interface BulkBody {
  kind: "cancel" | "pause" | "resume" | "retry";
  runs: (string)[];
  everything?: boolean;
}

/** The result for one run: the id of the accepted `command`, or the `error`. */
export interface BulkResult {
  run: string;
  command: string | null;
  error: ProblemDetails | null;
}

export interface BulkResults {
  results: (BulkResult)[];
}

/** The times from `from` until before `to`. */
export interface Calendar {
  from: string;
  to: string;
  now: string;
  workflows: (CalendarWorkflow)[];
  partial: boolean;
  cursor: string | null;
}

/** `run` is set if `state` is `run`. A `missed` time has passed without a run, or its run was deleted; the run of a `due` time is still to be created. */
export interface CalendarTime {
  time: string;
  state: TimeState;
  run: RunMark | null;
}

/** Times in ascending order. If `partial`, times from `until` on are missing, or some runs of an earlier schedule. */
export interface CalendarWorkflow {
  workflow: string;
  cron: string;
  timezone: string;
  enabled: boolean;
  times: (CalendarTime)[];
  partial: boolean;
  until: string | null;
  notes: (ClockNote)[];
  problem: string | null;
}

export type Catchup = "none" | "last" | "all";

export interface CheckBody {
  definition: string;
  source?: string | null;
}

export interface CheckedWorkflow {
  name: string;
  version: string;
  tasks: (string)[];
}

/** A local time that a clock change skips or repeats, and when the schedule fires. */
export interface ClockNote {
  local: string;
  kind: "skipped" | "repeated";
  fires: (string)[];
  text: string;
}

/** The project's files when the version was made: a hash of all, and of each by name, unless the names are too long. */
export interface Code {
  hash: string;
  count: number;
  commit: string | null;
  dirty: boolean | null;
  files: Record<string, string> | null;
}

/** The codes `a` and `b`, null if not recorded, and the files that differ, null if unknown. */
export interface CodeDifference {
  a: CodeName | null;
  b: CodeName | null;
  added: (string)[] | null;
  removed: (string)[] | null;
  changed: (string)[] | null;
}

/** A version's code without the names of its files. */
export interface CodeName {
  hash: string;
  count: number;
  commit: string | null;
  dirty: boolean | null;
}

/** The code of a run's version. `is_changed`: whether the project's files have changed since; null if that cannot be known, and `note` says why. */
export interface CodeReport {
  run: string;
  version: string;
  code: Code | null;
  is_changed: boolean | null;
  difference: CodeDifference | null;
  note: string | null;
}

export interface CommandBody {
  task?: string | null;
  comment?: string | null;
  everything?: boolean;
}

export type CommandKind = "cancel" | "pause" | "resume" | "retry" | "approve" | "reject" | "declare-dead";

/** As a version shows it. */
export type CompiledWorkflow = Record<string, unknown>;

export interface Control {
  target: string;
  mode: Mode;
  by: string;
  at: string;
  reason: string | null;
}

export interface ControlBody {
  mode: "paused" | "draining";
  reason?: string | null;
}

export interface Controls {
  controls: (Control)[];
}

/** A task that decided when the run ended. `waited`: seconds between the step before and its start. `saves`: by how many seconds what comes after it could have started earlier without it. */
export interface CriticalStep {
  name: string;
  started_at: string;
  finished_at: string;
  seconds: number;
  waited: number;
  saves: number;
}

/** Tasks that were added and removed, the keys of tasks that changed, and the changed keys of the workflow. */
export interface DefinitionDifference {
  added: (string)[];
  removed: (string)[];
  changed: Record<string, (string)[]>;
  keys: (string)[];
}

export interface DeployedWorkflow {
  name: string;
  version: string;
  new: boolean;
}

export interface DeployedWorkflows {
  workflows: (DeployedWorkflow)[];
}

/** Seconds; null for what has not ended. */
export interface Durations {
  a: number | null;
  b: number | null;
}

/** From the last `runs` successful runs of the workflow, which took `median` seconds. */
export interface Estimate {
  seconds_left: number;
  median: number | null;
  runs: number;
}

/** `class` is null for an executor of Ork; `max_workers` if it has no limit of its own. */
export interface ExecutorEntry {
  name: string;
  class: string | null;
  max_workers: number | null;
}

/** `wrong` and `right` are parts of a file or commands; empty if an example would not help. */
export interface ExplainedCode {
  code: string;
  title: string;
  why: string;
  wrong: string;
  right: string;
}

/** `why` has the texts of `items`. */
export interface Explanation {
  subject: string;
  why: (string)[];
  items: (WhyItem)[];
}

/** Why an attempt or task failed. */
export interface Failure {
  detail: FailureDetail | null;
  kind: FailureKind;
  message: string;
}

/** An exception that led to another one. */
export interface FailureCause {
  type: string;
  message: string;
  frames: (FailureFrame)[];
}

/** An exception has a type, a message, frames (the outermost first), causes and the inputs of the call; a command or a container has the last lines of its log. `retry` is false if another attempt is not allowed; `unreachable` says why the end could not be observed. Jobs of other services may add fields. */
export interface FailureDetail {
  type?: string;
  message?: string;
  frames?: (FailureFrame)[];
  causes?: (FailureCause)[];
  inputs?: Record<string, string>;
  tail?: (string)[];
  retry?: boolean;
  unreachable?: string;
}

/** A place in the user's code. `source` is the text of the line; the failing expression begins and ends at the columns `caret`. */
export interface FailureFrame {
  file: string;
  line: number;
  function: string;
  source: string;
  caret: (number)[] | null;
}

export type FailureKind = "exit" | "exception" | "output" | "input" | "start" | "lost" | "timeout" | "cancelled" | "rejected" | "internal";

/** How a value is entered. `choice` has `choices`; `json` is everything else. */
export type FieldKind = "str" | "int" | "float" | "bool" | "date" | "datetime" | "choice" | "list" | "json";

/** Why the scheduler ends an attempt. */
export type GiveUp = "stale" | "not_started" | "vanished" | "timeout" | "cancel" | "declared_dead";

export interface Graph {
  nodes: (GraphNode)[];
}

/** `instances` counts the instances of a fan-out by status. */
export interface GraphNode {
  name: string;
  executor: string;
  depends_on: (string)[];
  status: TaskStatus | null;
  instances: Partial<Record<TaskStatus, number>> | null;
}

/** A task in a run; of a fan-out, how many `instances` it has and how many of them `failed`. */
export interface GridCell {
  status: TaskStatus;
  instances: number;
  failed: number;
}

/** `cells` has one entry for each of the grid's `tasks`; null if the run does not have the task. */
export interface GridRun {
  id: string;
  status: RunStatus;
  trigger: Trigger;
  created_at: string;
  scheduled_for: string | null;
  seconds: number | null;
  version: string;
  cells: (GridCell | null)[];
}

/** The place of an attempt that a platform started as one of a group: `parallelism` of the group run at the same time. */
export interface GroupPlace {
  id: string;
  index: number;
  parallelism: number;
}

export interface Health {
  status: "ok" | "ready";
}

/** The settings of this server. `has_scheduler`: one runs in the same process. `alarm` wakes it while none runs. */
export interface InstallationAbout {
  version: string;
  store: string;
  alarm: AlarmKind;
  has_scheduler: boolean;
  pools: (Pool)[];
  executors: (ExecutorEntry)[];
}

/** `waiting` counts tasks that are ready but have no free slot or no scheduler. */
export interface InstallationStatus {
  is_disk_full: boolean;
  schedulers: (Scheduler)[];
  controls: (Control)[];
  unfinished: Partial<Record<RunStatus, number>>;
  runs: (Run)[];
  limits: (LimitUse)[];
  waiting: number;
  oldest_waiting: TaskSince | null;
  slowest: TaskSince | null;
  unsent_alerts: (UnsentAlert)[];
  quarantined: (QuarantinedItem)[];
}

/** Kind of a quarantined item. The value is shown to people. */
export type ItemKind = "run" | "command" | "version" | "workflow" | "schedule" | "location" | "token" | "alert";

/** A schedule that should have fired at `due`. */
export interface LateSchedule {
  workflow: string;
  due: string;
}

export interface Limit {
  name: string;
  slots: number;
  used: number;
  holders: (SlotHolder)[];
}

export interface LimitUse {
  name: string;
  slots: number;
  used: number;
}

export interface Limits {
  limits: (Limit)[];
}

/** `progress` is set with `counts=true`, for the first 100 runs of a page. */
export interface ListedRun {
  params: Record<string, unknown> | null;
  id: string;
  workflow: string;
  version: string;
  status: RunStatus;
  trigger: Trigger;
  created_at: string;
  scheduled_for: string | null;
  started_at: string | null;
  finished_at: string | null;
  error: string | null;
  round: number;
  priority: number;
  cancel_requested_at: string | null;
  note: string | null;
  fresh: boolean;
  parent: string | null;
  unreadable: string | null;
  progress: Progress | null;
}

export interface ListedScheduler {
  id: string;
  kind: "scheduler" | "run" | "tick" | "ork store copy";
  identity: string;
  started_at: string;
  runs: number;
  lease_seconds_left: number;
  liveness: Liveness;
  notes: (string)[];
  alive: boolean;
}

/** UNVERIFIED: an idle scheduler renews no lease; its process is on another machine and may be alive. */
export type Liveness = "alive" | "unverified" | "dead";

export interface Location {
  name: string;
  source: string;
  status: "new" | "looking" | "ok" | "failed";
  digest: string | null;
  workflows: (string)[];
  vanished: (string)[];
  looked_at: string | null;
  changed_at: string | null;
  looking_until: string | null;
  next_refresh: string;
  error: LocationError | null;
}

export interface LocationError {
  code: string | null;
  message: string;
  output: string | null;
  digest: string | null;
}

export interface LocationPage {
  locations: (Location)[];
  cursor: string | null;
}

/** The first line that differs, apart from times and ids; null for a log that ends before it. */
export interface LogDifference {
  line: number;
  a: string | null;
  b: string | null;
}

/** Lines count from 1. `offset` is the byte at which `text` starts, which is cut if the line is long. */
export interface LogHit {
  line: number;
  offset: number;
  text: string;
}

/** `offsets` are the bytes at which the lines 1, 1 + every, 1 + 2 * every… start. If `is_complete` is false, time ran out: they are those of the first `size` bytes. */
export interface LogLines {
  offsets: (number)[];
  lines: number;
  size: number;
  every: number;
  is_complete: boolean;
}

/** An address on this server that works once, until `until`. */
export interface LogLink {
  path: string;
  until: string;
}

/** `total` lines have the text. If `is_complete` is false, time ran out after `searched` bytes. */
export interface LogSearch {
  hits: (LogHit)[];
  total: number;
  searched: number;
  is_complete: boolean;
}

export interface LogWithHits {
  hits: (LogHit)[];
  total: number;
  searched: number;
  is_complete: boolean;
  task: string;
  index: number | null;
  attempt: number;
}

/** PAUSED: no new runs or tasks are started and no schedule fires; running tasks are watched to their end. DRAINING: in addition no runs are taken over, and a single scheduler exits when it owns nothing that runs. */
export type Mode = "paused" | "draining";

/** `half` is the page's half of the session: send it as `X-Ork-Session` with every request. */
export interface NewSession {
  name: string;
  role: Role;
  until: string | null;
  is_session: boolean;
  version: string;
  time: string;
  may: (string)[];
  half: string;
}

/** `token` is shown once. */
export interface NewToken {
  id: string;
  name: string;
  role: Role;
  created_at: string;
  revoked_at: string | null;
  expires_at: string | null;
  last_used_at: string | null;
  unreadable: string | null;
  token: string | null;
}

export type NoticeKind = "task" | "run" | "recovery" | "missed" | "approval" | "budget" | "test";

export interface ObjectKeys {
  keys: (string)[];
}

export interface ObjectSize {
  size: number | null;
}

export interface ObjectWritten {
  is_written: boolean;
}

export interface ObjectsAbout {
  id: string | null;
  kind: string;
  installation: string;
  version: string;
}

/** What happens when the estimated cost of a run exceeds its budget. People are alerted either way. */
export type OnExceed = "alert" | "cancel";

/** Operations of one kind, multiplied from counted figures. `usd` is null if they have no price. */
export interface OperationCost {
  name: string;
  count: number;
  usd: number | null;
}

/** A member of an object; `value` is null if it is long (`is_shown` is false). */
export interface OutputKey {
  name: string;
  value: unknown;
  is_shown: boolean;
}

export type OutputKind = "table" | "numbers" | "text" | "object" | "stored" | "other";

/** `size` is in bytes, null for a fan-out; `length` of a list, object or text, null if it was not read completely. A list has `items`, a table also `columns`, an object `keys`, a text `text`; another value is `value`. `is_complete`: nothing is left out. Of a value that is not JSON, `stored` is its description, and `preview` what its task's process wrote about it. */
export interface OutputPreview {
  kind: OutputKind;
  size: number | null;
  length: number | null;
  is_complete: boolean;
  items: unknown[] | null;
  columns: (string)[] | null;
  keys: (OutputKey)[] | null;
  text: string | null;
  value: unknown;
  stored: unknown;
  preview: unknown;
}

/** `unsent_alerts` counts up to 20. */
export interface Overview {
  since: string;
  now: string;
  failures: (Run)[];
  more_failures: boolean;
  running: (RunningRun)[];
  more_running: boolean;
  late: (LateSchedule)[];
  unsent_alerts: number;
  broken_locations: (BrokenLocation)[];
  workflows: (WorkflowHealth)[];
  cursor: string | null;
}

/** A value of run `a` and of run `b`. */
export interface Pair {
  a: unknown;
  b: unknown;
}

/** A param as the field of a form. `type` is as written; `kind` says how to enter a value, one of `choices` if it is a choice. The default of a sensitive param is not shown. */
export interface ParamField {
  name: string;
  type: string;
  kind: FieldKind;
  choices: unknown[] | null;
  may_be_null: boolean;
  required: boolean;
  default: unknown;
  description: string | null;
  sensitive: boolean;
}

/** A task that waits for approval; it fails at `due` if nobody decides. The person `not_by` must not approve it. */
export interface PendingApproval {
  run: string;
  workflow: string;
  task: string;
  message: string;
  for: string;
  not_by: string | null;
  since: string | null;
  due: string | null;
}

export interface PendingCommand {
  id: string;
  kind: CommandKind;
  by: string;
  task: string | null;
}

export interface PendingCommands {
  commands: (PendingCommand)[];
}

/** `rate` is the most starts in a time, such as `100/60s`; null if there is no limit. */
export interface Pool {
  name: string;
  slots: number;
  rate: string | null;
}

/** A version for a new run of its workflow. */
export interface PreparedVersion {
  version: string;
}

/** The last successful run of the workflow before this one. */
export interface PreviousSuccess {
  run: Run | null;
}

/** An error (RFC 9457). `code` never changes its meaning; `ork explain CODE` describes it. */
export interface ProblemDetails {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  hint: string | null;
}

/** Tasks that have ended, of all; a fan-out counts as its instances. */
export interface Progress {
  done: number;
  total: number;
}

export interface PruneBody {
  before: string;
  keep_last?: number;
  limit?: number;
  dry_run?: boolean;
}

export interface PrunedRuns {
  runs: (string)[];
}

export interface Quarantine {
  quarantined: (QuarantinedItem)[];
}

export interface QuarantinedItem {
  kind: ItemKind;
  id: string;
  reason: string;
  since: string | null;
}

/** Where an attempt ran: its process, or its container. */
export interface RanIn {
  host?: string | null;
  pid?: number | null;
  container?: string | null;
  image?: string | null;
  digest?: string | null;
  engine?: string | null;
}

/** What a reason says. Codes may be added, and never change their meaning. */
export type ReasonCode = "active_runs" | "approval" | "being_cancelled" | "cancelled" | "claim" | "command" | "concurrency" | "control" | "damaged" | "disk_full" | "dispatched" | "external_job" | "failed" | "given_up" | "group" | "instances" | "limit" | "more" | "not_started" | "no_scheduler" | "over_budget" | "paused" | "rate" | "ready" | "retry" | "running" | "set_aside" | "skipped" | "success" | "unknown" | "upstream";

/** A run, or a task of it. */
export interface Reference {
  run: string;
  task: string | null;
  index: number | null;
}

/** Of viewer, operator and admin, each includes the permissions of those before it; scheduler is for programs. */
export type Role = "viewer" | "operator" | "admin" | "scheduler";

export interface RotateBody {
  until?: string | null;
  digest?: string | null;
  expires_at?: string | null;
}

/** `params` is null in lists, in `last_run` and in events, because they may be large. Get the run to read them. */
export interface Run {
  params: Record<string, unknown> | null;
  id: string;
  workflow: string;
  version: string;
  status: RunStatus;
  trigger: Trigger;
  created_at: string;
  scheduled_for: string | null;
  started_at: string | null;
  finished_at: string | null;
  error: string | null;
  round: number;
  priority: number;
  cancel_requested_at: string | null;
  note: string | null;
  fresh: boolean;
  parent: string | null;
  unreadable: string | null;
}

/** `start` is in milliseconds since 1970. `names` are the workflow's tasks in its order. A fan-out has a row of its own, without index, before those of its instances. `earlier` has up to 20 attempts of each of these tasks that ended before its current one. `mark` is the next `since`. */
export interface RunColumns {
  run: string;
  status: RunStatus;
  start: number;
  mark: string;
  names: (string)[];
  statuses: (string)[];
  tasks: TaskColumns;
  earlier: TaskColumns;
}

/** What a run has cost until now, in US dollars: always an estimate, from list prices of `prices_date`. `usd` is the part that is known; it is all if `is_complete`. */
export interface RunCost {
  run: string;
  workflow: string;
  status: RunStatus;
  created_at: string;
  estimate: boolean;
  usd: number;
  is_complete: boolean;
  machines_usd: number;
  operations_usd: number;
  unknown_attempts: number;
  running_attempts: number;
  budget_usd: number | null;
  on_exceed: OnExceed | null;
  over_budget_at: string | null;
  prices_date: string;
  prices_file: string | null;
  tasks: (TaskCost)[];
  operations: (OperationCost)[];
}

/** What differs is set. If `partial`, the runs are large: `tasks` has only tasks that ended differently, some of them. */
export interface RunDifference {
  a: string;
  b: string;
  workflow: Pair | null;
  version: Pair | null;
  status: Pair | null;
  trigger: Pair | null;
  scheduled_for: Pair | null;
  error: Pair | null;
  params: Record<string, Pair>;
  seconds: Durations;
  definition: DefinitionDifference | null;
  code: CodeDifference | null;
  tasks: (TaskDifference)[];
  partial: boolean;
}

/** The data of an event `run`: with its changed tasks, of which `more` may exist, or with the number of tasks in each status. */
export interface RunEvent {
  run: Run;
  tasks?: (Task)[] | null;
  more?: boolean | null;
  counts?: Partial<Record<TaskStatus, number>> | null;
}

export interface RunIds {
  ids: (string)[];
}

/** `logs` are those with hits, each with a few of them; `searched` counts all. With a `cursor` there are more logs. */
export interface RunLogSearch {
  logs: (LogWithHits)[];
  searched: number;
  total: number;
  cursor: string | null;
}

/** A run as one mark on a page. `seconds` from its start to its end. */
export interface RunMark {
  id: string;
  status: RunStatus;
  trigger: Trigger;
  created_at: string;
  scheduled_for: string | null;
  seconds: number | null;
}

/** `count` is set with `counts=true`: the runs on all pages, at most 1000. If `count_is_exact` is false, there are or may be more. `partial`: some runs that match are on no page. */
export interface RunPage {
  runs: (ListedRun)[];
  cursor: string | null;
  count: number | null;
  count_is_exact: boolean | null;
  partial: boolean;
}

export type RunStatus = "pending" | "running" | "paused" | "success" | "failed" | "cancelled";

/** `failures` has at most 20 tasks; `critical_path` is empty until the run has ended. */
export interface RunSummary {
  run: Run;
  mark: string;
  counts: Partial<Record<TaskStatus, number>>;
  tasks: (TaskCounts)[];
  failures: (TaskFailure)[];
  more_failures: boolean;
  progress: Progress;
  estimate: Estimate | null;
  critical_path: (CriticalStep)[];
}

export interface RunWithTasks {
  params: Record<string, unknown> | null;
  id: string;
  workflow: string;
  version: string;
  status: RunStatus;
  trigger: Trigger;
  created_at: string;
  scheduled_for: string | null;
  started_at: string | null;
  finished_at: string | null;
  error: string | null;
  round: number;
  priority: number;
  cancel_requested_at: string | null;
  note: string | null;
  fresh: boolean;
  parent: string | null;
  unreadable: string | null;
  owner: string | null;
  tasks: (TaskWithAttempts)[];
}

/** `progress` is set for the first 20 runs. */
export interface RunningRun {
  run: Run;
  progress: Progress | null;
}

export interface Schedule {
  cron: string;
  timezone: string;
  catchup: Catchup;
  enabled: boolean;
  jitter: number;
  catchup_limit: number;
}

export interface SchedulePage {
  schedules: (UpcomingSchedule)[];
  cursor: string | null;
}

export interface ScheduleState {
  workflow: string;
  enabled: boolean;
}

/** `liveness` is alive, unverified (idle, cannot be checked from the server) or dead. `kind` is a service, a command that ends with its own run, one pass by `ork tick`, or `ork store copy`. */
export interface Scheduler {
  id: string;
  kind: "scheduler" | "run" | "tick" | "ork store copy";
  identity: string;
  started_at: string;
  runs: number;
  lease_seconds_left: number;
  liveness: Liveness;
  notes: (string)[];
}

export interface Schedulers {
  schedulers: (ListedScheduler)[];
}

/** Who sends the request. `until`: when the session ends or the token expires. `may` has the operation ids of this document that the role allows. `is_session` is false for a request with a token. */
export interface SessionState {
  name: string;
  role: Role;
  until: string | null;
  is_session: boolean;
  version: string;
  time: string;
  may: (string)[];
}

/** One of the two. */
export interface SignInBody {
  ticket?: string | null;
  token?: string | null;
}

/** How people sign in to the web UI, besides with a token. */
export interface SignInWays {
  single_sign_on: SingleSignOn | null;
}

/** A provider that people can sign in with. A browser that opens `url` is sent there. */
export interface SingleSignOn {
  name: string;
  url: string;
}

export interface SlotHolder {
  run: string;
  task: string;
  index: number | null;
  attempt: number;
}

export type Sort = "duration" | "-duration";

/** Seconds of `count` runs or tasks that succeeded. `change` is 0.1 if `p50` is 10 % more than `p50_before`. */
export interface Spread {
  count: number;
  p50: number | null;
  p95: number | null;
  p50_before: number | null;
  change: number | null;
}

/** A fan-out has a row of its own, with `instances` and `width`, in addition to those of its instances. A large output is null here, and `output_size` is its size; `GET …/output` returns it. */
export interface Task {
  name: string;
  index: number | null;
  item: unknown;
  width: unknown;
  depends_on: (string)[];
  cause: string | null;
  error: string | null;
  output: unknown;
  output_size: number | null;
  status: TaskStatus;
  executor: string;
  attempt: number;
  earlier_attempts: number;
  reason: string | null;
  failure: Failure | null;
  exit_code: number | null;
  dispatched_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  retry_at: string | null;
  instances: number | null;
  cache_key: string | null;
}

/** Columns of equal length. `task` and `status` are places in `names` and `statuses`; times are milliseconds: `queued` from the run's start to the dispatch, `wait` from there to the task's start, `ran` from there to its end. */
export interface TaskColumns {
  task: (number)[];
  index: (number | null)[];
  status: (number)[];
  attempt: (number)[];
  queued: (number | null)[];
  wait: (number | null)[];
  ran: (number | null)[];
}

/** The attempts of a task together. `usd` is the part that is known; `unknown` counts the attempts that are not in it. Sizes and times that are not known are null. */
export interface TaskCost {
  name: string;
  where: (string)[];
  attempts: number;
  running: number;
  seconds: number;
  billed_seconds: number;
  vcpu_seconds: number | null;
  gib_seconds: number | null;
  usd: number;
  unknown: number;
  why_unknown: string | null;
}

/** `status` is null before the run has started; `instances` counts the instances of a fan-out by status. */
export interface TaskCounts {
  name: string;
  status: TaskStatus | null;
  instances: Partial<Record<TaskStatus, number>> | null;
}

/** What differs is set. An `output` is shown as text, at most 1000 characters, or as its size. `log` is set for up to 20 tasks that ended differently. */
export interface TaskDifference {
  name: string;
  index: number | null;
  seconds: Durations;
  status: Pair | null;
  attempts: Pair | null;
  error: Pair | null;
  output: Pair | null;
  log: LogDifference | null;
}

export interface TaskFailure {
  name: string;
  index: number | null;
  attempt: number;
  failure: Failure | null;
  exit_code: number | null;
  finished_at: string | null;
}

/** `mark` is the next `since`. */
export interface TaskPage {
  run: Run;
  owner: string | null;
  tasks: (Task)[];
  mark: string;
  cursor: string | null;
}

export interface TaskSince {
  run: string;
  task: string;
  since: string;
  seconds: number;
}

export interface TaskSpread {
  count: number;
  p50: number | null;
  p95: number | null;
  p50_before: number | null;
  change: number | null;
  name: string;
}

export type TaskStatus = "pending" | "dispatched" | "running" | "success" | "failed" | "skipped" | "cancelled";

export interface TaskWithAttempts {
  name: string;
  index: number | null;
  item: unknown;
  width: unknown;
  depends_on: (string)[];
  cause: string | null;
  error: string | null;
  output: unknown;
  output_size: number | null;
  status: TaskStatus;
  executor: string;
  attempt: number;
  earlier_attempts: number;
  reason: string | null;
  failure: Failure | null;
  exit_code: number | null;
  dispatched_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  retry_at: string | null;
  instances: number | null;
  cache_key: string | null;
  attempts: (Attempt)[];
}

export interface TickReport {
  steps: number;
  launched: number;
  finished: number;
  next_wake: string | null;
}

/** What became of a scheduled time. */
export type TimeState = "run" | "missed" | "due" | "planned";

export interface Token {
  id: string;
  name: string;
  role: Role;
  created_at: string;
  revoked_at: string | null;
  expires_at: string | null;
  last_used_at: string | null;
  unreadable: string | null;
}

export interface TokenBody {
  name: string;
  role: "viewer" | "operator" | "admin" | "scheduler";
  digest?: string | null;
  expires_at?: string | null;
}

export interface TokenPage {
  tokens: (Token)[];
  cursor: string | null;
}

/** What started a run. */
export type Trigger = "manual" | "schedule" | "backfill" | "event";

export interface TriggerBody {
  params?: Record<string, unknown>;
  version?: string | null;
  priority?: number;
  fresh?: boolean;
  parent?: string | null;
  scheduled_for?: string | null;
}

/** A ticket that `POST /session` accepts once, until `until`. */
export interface UiTicket {
  ticket: string;
  until: string;
}

export interface UnsentAlert {
  id: string;
  kind: NoticeKind;
  workflow: string | null;
  run: string | null;
  task: string | null;
  index: number | null;
  raised_at: string;
  tries: number;
  error: string | null;
  retry_at: string | null;
}

/** A schedule and its next times; `next_fire` is when it actually fires, including jitter. */
export interface UpcomingSchedule {
  workflow: string;
  cron: string;
  timezone: string;
  catchup: Catchup;
  enabled: boolean;
  next: (string)[];
  jitter: number;
  next_fire: string | null;
  version: string;
}

export interface Version {
  id: string;
  workflow: string;
  root: string;
  source: string | null;
  definition: Record<string, unknown>;
  code: Code | null;
}

export interface VersionDifference {
  added: (string)[];
  removed: (string)[];
  changed: Record<string, (string)[]>;
  keys: (string)[];
  a: string;
  b: string;
  before: Record<string, unknown>;
  after: Record<string, unknown>;
  code: CodeDifference | null;
}

export interface VersionEntry {
  id: string;
  saved_at: string | null;
  source: string | null;
}

export interface VersionPage {
  versions: (VersionEntry)[];
  cursor: string | null;
}

/** One sentence of the answer. `task` and `index`: the task that the sentence is about; null if it is about the subject. `until`: when that ends at the latest, or the next attempt starts. `refs`: who is waited for, or holds the slots. */
export interface WhyItem {
  code: ReasonCode;
  text: string;
  until: string | null;
  task: string | null;
  index: number | null;
  refs: (Reference)[];
}

export interface Woken {
  woken: "scheduler" | "alarm" | "tick";
}

export interface WorkerConfig {
  name: string;
  where: string | null;
  cpu: number | null;
  memory: number | null;
  pids: number | null;
  timeout: number | null;
  env: (string)[];
  host: string | null;
  network: string | null;
  user: string | null;
  read_only: boolean;
  capabilities: (string)[];
  new_privileges: boolean;
  pull: string;
  volumes: (string)[];
  service_account: string | null;
  vpc_connector: string | null;
  image: string | null;
  subnet: string | null;
  gpu: string | null;
  project: string | null;
  region: string | null;
  namespace: string | null;
  context: string | null;
  node_selector: Record<string, string>;
  tolerations: (Record<string, string | number>)[];
  image_pull_secrets: (string)[];
  labels: Record<string, string>;
  pod_template: string | null;
}

export interface WorkerConfigPage {
  workers: (WorkerConfig)[];
  cursor: string | null;
}

export interface Workflow {
  last_run: Run | null;
  name: string;
  version: string;
  enabled: boolean;
  deployed_at: string;
  origin: string | null;
  schedule: Schedule | null;
  unreadable: string | null;
}

export interface WorkflowBody {
  enabled: boolean;
}

/** From up to 50 successful runs of the last week, and of the week before. */
export interface WorkflowDurations {
  runs: Spread;
  tasks: (TaskSpread)[];
}

/** A workflow file, as JSON. */
export type WorkflowFile = Record<string, unknown>;

export interface WorkflowGrid {
  tasks: (string)[];
  runs: (GridRun)[];
}

/** The last 20 runs, newest first. `p50` of the successful ones; `success_rate` of those that succeeded or failed. */
export interface WorkflowHealth {
  name: string;
  enabled: boolean;
  runs: (RunMark)[];
  p50: number | null;
  success_rate: number | null;
}

export interface WorkflowPage {
  workflows: (Workflow)[];
  cursor: string | null;
}

/** The params of the current version. */
export interface WorkflowParams {
  workflow: string;
  version: string;
  params: (ParamField)[];
}

/** `definition` is null if its version cannot be read. */
export interface WorkflowWithDefinition {
  last_run: Run | null;
  name: string;
  version: string;
  enabled: boolean;
  deployed_at: string;
  origin: string | null;
  schedule: Schedule | null;
  unreadable: string | null;
  definition: Record<string, unknown> | null;
}

/** GET: what is given in path and query, and the response. */
export interface Reads {
  "/approvals": { given: Record<never, never>; answer: Approvals; role: "viewer" };
  "/audit": { given: { limit?: number; cursor?: string | null }; answer: AuditPage; role: "admin" };
  "/calendar": { given: { from: string; to: string; workflow?: string | null; cursor?: string | null }; answer: Calendar; role: "viewer" };
  "/codes/{code}": { given: { code: string }; answer: ExplainedCode; role: "viewer" };
  "/controls": { given: Record<never, never>; answer: Controls; role: "viewer" };
  "/events": { given: { workflow?: string | null; run?: string | null; tasks?: "changed" | "none"; since?: string | null }; answer: RunEvent; role: "viewer" };
  "/healthz": { given: Record<never, never>; answer: Health; role: null };
  "/installation": { given: Record<never, never>; answer: InstallationAbout; role: "viewer" };
  "/limits": { given: Record<never, never>; answer: Limits; role: "viewer" };
  "/locations": { given: { limit?: number; cursor?: string | null }; answer: LocationPage; role: "viewer" };
  "/metrics": { given: Record<never, never>; answer: unknown; role: "viewer" };
  "/objects": { given: { key: string; start?: number | null; size?: number | null; limit?: number | null }; answer: unknown; role: "scheduler" };
  "/objects/about": { given: Record<never, never>; answer: ObjectsAbout; role: "scheduler" };
  "/objects/keys": { given: { prefix?: string }; answer: ObjectKeys; role: "scheduler" };
  "/objects/log": { given: { attempt: string; start?: number; size?: number | null }; answer: unknown; role: "scheduler" };
  "/objects/log/size": { given: { attempt: string }; answer: ObjectSize; role: "scheduler" };
  "/objects/size": { given: { key: string }; answer: ObjectSize; role: "scheduler" };
  "/objects/value": { given: { key: string; start?: number; size?: number | null }; answer: unknown; role: "scheduler" };
  "/objects/value/size": { given: { key: string }; answer: ObjectSize; role: "scheduler" };
  "/objects/values": { given: { attempt: string }; answer: ObjectKeys; role: "scheduler" };
  "/overview": { given: { since?: string | null; limit?: number; cursor?: string | null }; answer: Overview; role: "viewer" };
  "/quarantine": { given: Record<never, never>; answer: Quarantine; role: "viewer" };
  "/readyz": { given: Record<never, never>; answer: Health; role: null };
  "/run-ids": { given: { prefix: string; limit?: number }; answer: RunIds; role: "viewer" };
  "/runs": { given: { workflow?: string | null; status?: (RunStatus)[] | null; created_after?: string | null; created_before?: string | null; trigger?: Trigger | null; q?: string | null; param?: string | null; sort?: Sort | null; scheduled_for?: (string)[] | null; counts?: boolean; limit?: number; cursor?: string | null }; answer: RunPage; role: "viewer" };
  "/runs/{run}": { given: { run: string }; answer: RunWithTasks; role: "viewer" };
  "/runs/{run}/attempts": { given: { run: string; task?: string | null; index?: number | null; limit?: number; cursor?: string | null }; answer: AttemptPage; role: "viewer" };
  "/runs/{run}/code": { given: { run: string }; answer: CodeReport; role: "viewer" };
  "/runs/{run}/columns": { given: { run: string; since?: string | null }; answer: RunColumns; role: "viewer" };
  "/runs/{run}/commands": { given: { run: string }; answer: PendingCommands; role: "viewer" };
  "/runs/{run}/cost": { given: { run: string }; answer: RunCost; role: "viewer" };
  "/runs/{run}/diff/{other}": { given: { run: string; other: string }; answer: RunDifference; role: "viewer" };
  "/runs/{run}/graph": { given: { run: string }; answer: Graph; role: "viewer" };
  "/runs/{run}/logs/search": { given: { run: string; q: string; ignore_case?: boolean; task?: string | null; cursor?: string | null }; answer: RunLogSearch; role: "viewer" };
  "/runs/{run}/previous-success": { given: { run: string }; answer: PreviousSuccess; role: "viewer" };
  "/runs/{run}/summary": { given: { run: string }; answer: RunSummary; role: "viewer" };
  "/runs/{run}/tasks": { given: { run: string; since?: string | null; name?: string | null; status?: (TaskStatus)[] | null; limit?: number; cursor?: string | null }; answer: TaskPage; role: "viewer" };
  "/runs/{run}/tasks/{name}/output": { given: { run: string; name: string; preview?: number | null }; answer: unknown | OutputPreview; role: "viewer" };
  "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log": { given: { run: string; name: string; index: number; number: number; follow?: string | null }; answer: unknown; role: "viewer" };
  "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log/download": { given: { run: string; name: string; index: number; number: number; ticket?: string | null }; answer: unknown; role: "viewer" };
  "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log/lines": { given: { run: string; name: string; index: number; number: number; every?: number }; answer: LogLines; role: "viewer" };
  "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log/search": { given: { run: string; name: string; index: number; number: number; q: string; ignore_case?: boolean; limit?: number }; answer: LogSearch; role: "viewer" };
  "/runs/{run}/tasks/{name}/{index}/attempts/{number}/values/{value}": { given: { run: string; name: string; index: number; number: number; value: string }; answer: unknown; role: "viewer" };
  "/runs/{run}/tasks/{name}/{index}/output": { given: { run: string; name: string; index: number; preview?: number | null }; answer: unknown | OutputPreview; role: "viewer" };
  "/runs/{run}/why": { given: { run: string; task?: string | null }; answer: Explanation; role: "viewer" };
  "/schedulers": { given: Record<never, never>; answer: Schedulers; role: "viewer" };
  "/schedules": { given: { next?: number; limit?: number; cursor?: string | null }; answer: SchedulePage; role: "viewer" };
  "/session": { given: Record<never, never>; answer: SessionState; role: "viewer" };
  "/sign-in": { given: Record<never, never>; answer: SignInWays; role: null };
  "/status": { given: Record<never, never>; answer: InstallationStatus; role: "viewer" };
  "/tokens": { given: { limit?: number; cursor?: string | null }; answer: TokenPage; role: "admin" };
  "/versions/{version}": { given: { version: string }; answer: Version; role: "viewer" };
  "/versions/{version}/diff/{other}": { given: { version: string; other: string }; answer: VersionDifference; role: "viewer" };
  "/workers": { given: { limit?: number; cursor?: string | null }; answer: WorkerConfigPage; role: "viewer" };
  "/workflows": { given: { limit?: number; cursor?: string | null }; answer: WorkflowPage; role: "viewer" };
  "/workflows/{name}": { given: { name: string }; answer: WorkflowWithDefinition; role: "viewer" };
  "/workflows/{name}/durations": { given: { name: string }; answer: WorkflowDurations; role: "viewer" };
  "/workflows/{name}/grid": { given: { name: string; runs?: number }; answer: WorkflowGrid; role: "viewer" };
  "/workflows/{name}/params": { given: { name: string }; answer: WorkflowParams; role: "viewer" };
  "/workflows/{name}/versions": { given: { name: string; limit?: number; cursor?: string | null }; answer: VersionPage; role: "viewer" };
}

/** Other methods, named `METHOD path`. */
export interface Writes {
  "DELETE /controls/{target}": { given: { target: string }; answer: unknown; role: "admin" };
  "DELETE /objects": { given: { prefix: string }; answer: unknown; role: "scheduler" };
  "DELETE /objects/values": { given: { attempt: string }; answer: unknown; role: "scheduler" };
  "DELETE /session": { given: Record<never, never>; answer: unknown; role: "viewer" };
  "DELETE /tokens/{id}": { given: { id: string }; answer: unknown; role: "admin" };
  "DELETE /workflows/{name}": { given: { name: string }; answer: unknown; role: "admin" };
  "PATCH /workflows/{name}": { given: { name: string }; body: WorkflowBody; answer: Workflow; role: "operator" };
  "PATCH /workflows/{name}/schedule": { given: { name: string }; body: WorkflowBody; answer: ScheduleState; role: "operator" };
  "POST /events/pubsub": { given: Record<never, never>; body: unknown; answer: Woken; role: "operator" };
  "POST /hooks/{name}": { given: { name: string }; body: Record<string, unknown>; answer: Run; role: "operator" };
  "POST /locations/{name}/refresh": { given: { name: string }; answer: Location; role: "operator" };
  "POST /objects/log": { given: { attempt: string }; body: unknown; answer: unknown; role: "scheduler" };
  "POST /objects/many/get": { given: Record<never, never>; body: unknown; answer: unknown; role: "scheduler" };
  "POST /objects/many/put": { given: Record<never, never>; body: unknown; answer: unknown; role: "scheduler" };
  "POST /prune": { given: Record<never, never>; body: PruneBody; answer: PrunedRuns; role: "admin" };
  "POST /run-commands": { given: Record<never, never>; body: BulkBody; answer: BulkResults; role: "operator" };
  "POST /runs/{run}/approve": { given: { run: string }; body: CommandBody; answer: AcceptedCommand; role: "operator" };
  "POST /runs/{run}/cancel": { given: { run: string }; body: CommandBody; answer: AcceptedCommand; role: "operator" };
  "POST /runs/{run}/declare-dead": { given: { run: string }; body: CommandBody; answer: AcceptedCommand; role: "operator" };
  "POST /runs/{run}/pause": { given: { run: string }; body: CommandBody; answer: AcceptedCommand; role: "operator" };
  "POST /runs/{run}/reject": { given: { run: string }; body: CommandBody; answer: AcceptedCommand; role: "operator" };
  "POST /runs/{run}/resume": { given: { run: string }; body: CommandBody; answer: AcceptedCommand; role: "operator" };
  "POST /runs/{run}/retry": { given: { run: string }; body: CommandBody; answer: AcceptedCommand; role: "operator" };
  "POST /runs/{run}/same-code": { given: { run: string }; answer: PreparedVersion; role: "operator" };
  "POST /runs/{run}/tasks/{name}/{index}/attempts/{number}/log/link": { given: { run: string; name: string; index: number; number: number }; answer: LogLink; role: "viewer" };
  "POST /session": { given: Record<never, never>; body: SignInBody; answer: NewSession; role: null };
  "POST /tick": { given: Record<never, never>; answer: TickReport; role: "operator" };
  "POST /tokens": { given: Record<never, never>; body: TokenBody; answer: NewToken; role: "admin" };
  "POST /tokens/{id}/rotate": { given: { id: string }; body: RotateBody; answer: NewToken; role: "admin" };
  "POST /ui-tickets": { given: Record<never, never>; answer: UiTicket; role: "viewer" };
  "POST /wake": { given: Record<never, never>; answer: Woken; role: "operator" };
  "POST /workflow-checks": { given: Record<never, never>; body: CheckBody; answer: CheckedWorkflow; role: "operator" };
  "POST /workflows": { given: { root?: string | null; source?: string | null }; body: WorkflowFile; answer: DeployedWorkflows; role: "admin" };
  "POST /workflows/{name}/backfills": { given: { name: string }; body: BackfillBody; answer: Backfill; role: "operator" };
  "POST /workflows/{name}/runs": { given: { name: string }; body: TriggerBody; answer: Run; role: "operator" };
  "PUT /controls/{target}": { given: { target: string }; body: ControlBody; answer: Control; role: "admin" };
  "PUT /objects": { given: { key: string; if_absent?: boolean }; body: unknown; answer: ObjectWritten; role: "scheduler" };
  "PUT /objects/log": { given: { attempt: string; start: number }; body: unknown; answer: unknown; role: "scheduler" };
  "PUT /objects/value": { given: { attempt: string; name: string; start?: number }; body: unknown; answer: unknown; role: "scheduler" };
}
