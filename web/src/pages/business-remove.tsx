// Removes a business, after its plan and the number of the business.
import { useEffect, useState } from "preact/hooks";
import { del, Failure } from "../api.ts";
import type { Applied, Business } from "../api-types.ts";
import { go, href } from "../router.ts";
import { Button, Dialog, Field, Problem } from "../ui/kit.tsx";
import { plain } from "../ui/format.ts";
import { t } from "../words.ts";
import { PlanList } from "./business-plan.tsx";

export function RemoveDialog({ of, onClose }: { of: Business; onClose: () => void }) {
  const [plan, setPlan] = useState<Applied>();
  const [failure, setFailure] = useState<Failure>();
  const [typed, setTyped] = useState("");
  const [prune, setPrune] = useState(false);
  const [busy, setBusy] = useState(false);
  const remove = (query: { dry_run?: boolean; version?: number }) => del<Applied>(`/topology/${of.biz}`, undefined, { ...query, prune: prune || undefined });
  useEffect(() => { remove({ dry_run: true }).then((p) => { setPlan(p); setFailure(undefined); }, (err: Failure) => setFailure(err)); }, [prune]);

  const run = async () => {
    setBusy(true);
    try {
      await remove({ version: plan?.version });
      onClose();
      go(href("/businesses"));
    } catch (err) {
      if (!(err instanceof Failure)) throw err;
      setFailure(err);
    }
    setBusy(false);
  };
  return (
    <Dialog title={t("remove.title", { name: plain(of.name) })} onClose={onClose} wide>
      <p>{t("remove.what")}</p>
      {failure && <Problem of={failure} />}
      {!plan && !failure && <p class="dim loading" role="status">{t("loading")}</p>}
      {plan && <PlanList of={plan} />}
      {plan && (plan.managed > 0 || prune) && (
        <>
          {plan.managed > 0 && <p>{t("apply.managed", { n: plan.managed, name: plan.managed_instances?.[0] ? plain(`${plan.managed_instances[0].path} ${plan.managed_instances[0].text}`) : "-" })}</p>}
          <label class="row"><input type="checkbox" checked={prune} onChange={(e) => setPrune(e.currentTarget.checked)} /> {t("apply.prune")}</label>
        </>
      )}
      {plan && (
        <form class="stack" onSubmit={(e) => { e.preventDefault(); void run(); }}>
          <Field label={t("remove.type")}>{(a) => <input {...a} inputMode="numeric" autocomplete="off" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />}</Field>
          <div class="dialog-foot">
            <Button onClick={onClose}>{t("cancel")}</Button>
            <Button kind="danger" type="submit" disabled={busy || typed.trim() !== String(of.biz)}>{t("remove.go")}</Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}
