/** What waits for a person's decision? */

import type { JSX } from "preact";
import { ApprovalRows, useApprovals } from "../parts/approvals.tsx";
import { Empty } from "../parts/empty.tsx";
import { Page } from "../parts/page.tsx";

export default function ApprovalsPage(): JSX.Element {
  const read = useApprovals();
  return (
    <Page title="Approvals" crumbs={[["", "Home"]]} read={read} what="the approvals" command="ork approvals" live>
      {({ approvals }) => (approvals.length === 0 ? <Empty title="Nothing waits for approval" icon="check">A task with <code>approval: Publish it?</code> waits here until somebody decides.</Empty> : <ApprovalRows waiting={approvals} />)}
    </Page>
  );
}
