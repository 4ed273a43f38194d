/** Tokens: create, rotate, revoke. The text of a new token is shown once. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { NewToken, Token } from "../api.d.ts";
import { now, serverNow } from "../clock.ts";
import { useRead } from "../data/read.ts";
import { type Role, session, source } from "../data/session.ts";
import { currentQuery, setQuery } from "../router.ts";
import { argument } from "../words.ts";
import { Action } from "./action.tsx";
import { CommandLine, CopyButton } from "./command.tsx";
import { Dialog } from "./dialog.tsx";
import { Empty } from "./empty.tsx";
import { Choice, Select, TextField } from "./form.tsx";
import { Page } from "./page.tsx";
import { type Column, Table } from "./table.tsx";
import { Ago } from "./time.tsx";

const DAY = 86_400;
const AGES = [["", "never"], ["1d", "in a day"], ["7d", "in a week"], ["30d", "in 30 days"], ["90d", "in 90 days"], ["365d", "in a year"]] as const;
const OVERLAPS = [["1h", "an hour"], ["1d", "a day"], ["7d", "a week"]] as const;
const ROLES: readonly (readonly [Role, string])[] = [
  ["viewer", "viewer: reads"],
  ["operator", "operator: also starts, stops and approves"],
  ["admin", "admin: also deploys and manages tokens"],
  ["scheduler", "scheduler: for a scheduler on another machine"],
];

export function Tokens({ bar }: { bar: JSX.Element }): JSX.Element {
  const read = useRead("/tokens", { limit: 1000 });
  const [made, setMade] = useState<NewToken | null>(null);
  const isAll = currentQuery.value.get("tokens") === "all";
  const take = (token: NewToken): void => { setMade(token); read.reload(); };
  return (
    <>
      <Page
        title="Access"
        read={read}
        what="the tokens"
        command="ork token list"
        actions={<Create onMade={take} />}
        bar={<>{bar}<Choice label="Tokens" value={isAll ? "all" : ""} onChange={(tokens) => setQuery({ tokens })} options={[["", "Valid"], ["all", "All"]]} /></>}
      >
        {({ tokens }) => {
          const shown = tokens.filter((each) => isAll || isValid(each));
          if (shown.length === 0) return <Empty title="No token is valid" icon="access" command="ork token create --role viewer --name NAME" />;
          return <Table label="Tokens" rows={shown} columns={columns(take, read.reload)} rowKey={(each) => each.id} rowHeight={40} />;
        }}
      </Page>
      {made && <Made token={made} onClose={() => setMade(null)} />}
    </>
  );
}

function columns(take: (token: NewToken) => void, reload: () => void): readonly Column<Token>[] {
  return [
    { key: "name", head: "Name", width: "minmax(5.5rem, 2fr)", cell: (each) => <>{each.name}{each.name === session.value?.name && <span class="dim"> (you)</span>}</>, sort: (a, b) => (a.name < b.name ? -1 : 1) },
    { key: "role", head: "Role", width: "5.5rem", cell: (each) => each.role, sort: (a, b) => (a.role < b.role ? -1 : 1) },
    { key: "id", head: "Id", width: "6.5rem", wide: true, cell: (each) => <code class="dim">{each.id}</code> },
    { key: "state", head: "State", width: "minmax(7rem, 1fr)", wide: true, cell: (each) => <TokenState of={each} /> },
    { key: "created", head: "Created", width: "6.5rem", align: "right", wide: true, cell: (each) => <Ago at={each.created_at} />, sort: (a, b) => (a.created_at < b.created_at ? -1 : 1) },
    { key: "used", head: "Last used", width: "6.5rem", align: "right", wide: true, cell: (each) => (each.last_used_at ? <Ago at={each.last_used_at} /> : <span class="dim">never</span>), sort: (a, b) => ((a.last_used_at ?? "") < (b.last_used_at ?? "") ? -1 : 1) },
    { key: "actions", head: "Actions", width: "9rem", align: "right", cell: (each) => (isValid(each) ? <span class="row-actions"><Rotate of={each} onMade={take} /><Revoke of={each} reload={reload} /></span> : null) },
  ];
}

function TokenState({ of }: { of: Token }): JSX.Element {
  if (of.unreadable) return <span class="field-error" title={of.unreadable}>unreadable</span>;
  if (of.revoked_at) return <span class="dim">revoked <Ago at={of.revoked_at} /></span>;
  if (!of.expires_at) return <>valid</>;
  return isValid(of) ? <>expires <Ago at={of.expires_at} /></> : <span class="dim">expired <Ago at={of.expires_at} /></span>;
}

function isValid(token: Token): boolean {
  return token.revoked_at === null && (token.expires_at === null || Date.parse(token.expires_at) > now.value);
}

// ── what can be done ─────────────────────────────────────────────────────────────────────────────

function Create({ onMade }: { onMade: (token: NewToken) => void }): JSX.Element {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [age, setAge] = useState("90d");
  return (
    <Action
      label="New token"
      icon="access"
      kind="primary"
      role="admin"
      command={`ork token create --role ${role}${name ? ` --name ${argument(name)}` : ""}${age ? ` --expires ${age}` : ""}`}
      fields={
        <>
          <TextField label="Name" hint="Who or what uses it; shown in the audit." value={name} onInput={setName} />
          <Select label="Role" value={role} onChange={(next) => setRole(next as Role)} options={ROLES} />
          <Select label="Expires" value={age} onChange={setAge} options={AGES} />
        </>
      }
      run={async () => onMade(await source.act("POST /tokens", {}, { name: name || "token", role: role as "viewer", expires_at: timeIn(age) }))}
      done={null}
    />
  );
}

function Rotate({ of, onMade }: { of: Token; onMade: (token: NewToken) => void }): JSX.Element {
  const [overlap, setOverlap] = useState("1h");
  const [age, setAge] = useState("90d");
  return (
    <Action
      label="Rotate"
      small
      role="admin"
      command={`ork token rotate ${of.id} --overlap ${overlap}${age ? ` --expires ${age}` : ""}`}
      ask={`Creates a token with the name ${of.name} and the role ${of.role}. The old one stays valid for a while, so that its users can change.`}
      fields={
        <>
          <Select label="The old one stays valid for" value={overlap} onChange={setOverlap} options={OVERLAPS} />
          <Select label="The new one expires" value={age} onChange={setAge} options={AGES} />
        </>
      }
      run={async () => onMade(await source.act("POST /tokens/{id}/rotate", { id: of.id }, { until: timeIn(overlap), expires_at: timeIn(age) }))}
      done={null}
    />
  );
}

function Revoke({ of, reload }: { of: Token; reload: () => void }): JSX.Element {
  return <Action label="Revoke" small kind="danger" role="admin" command={`ork token revoke ${of.id}`} ask={`Whoever uses the token ${of.name} is signed out at once. This cannot be undone.`} run={() => source.act("DELETE /tokens/{id}", { id: of.id })} done={`The token ${of.name} is revoked`} onDone={reload} />;
}

function Made({ token, onClose }: { token: NewToken; onClose: () => void }): JSX.Element {
  const text = token.token ?? "";
  return (
    <Dialog title={`The token ${token.name}`} onClose={onClose} footer={<><span class="push" /><button type="button" class="button primary" onClick={onClose}>I have copied it</button></>}>
      <div class="made">
        <p>Copy it now. It is not stored and cannot be shown again.</p>
        <div class="secret"><code>{text}</code><CopyButton text={text} label="Copy the token" quiet={false} /></div>
        <p class="dim">Role {token.role}, {token.expires_at ? <>expires <Ago at={token.expires_at} /></> : "does not expire"}. Use it as:</p>
        <CommandLine command={`export ORK_SERVER=${location.origin} ORK_TOKEN=…`} />
      </div>
    </Dialog>
  );
}

/** `90d` from now, as a time; null for never. */
function timeIn(age: string): string | null {
  if (!age) return null;
  const seconds = Number(age.slice(0, -1)) * (age.endsWith("h") ? 3600 : DAY);
  return new Date(serverNow() + seconds * 1000).toISOString();
}
