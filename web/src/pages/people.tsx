import { may } from "../api.ts";
import { href, place } from "../router.ts";
import { Empty, PageHead, Tabs } from "../ui/kit.tsx";
import { t } from "../words.ts";
import { Apps } from "./people-apps.tsx";
import { Grants } from "./people-grants.tsx";
import { Users } from "./people-users.tsx";

const tabs = ["users", "apps", "grants"] as const;

export default function People() {
  if (!may("users") && !may("admin")) return <Empty title={t("empty.rights")} />;
  const asked = place.value.query.get("tab");
  const at = tabs.find((k) => k === asked) ?? "users";
  return (
    <>
      <PageHead title={t("people.title")} />
      <Tabs label={t("people.title")} at={at} items={tabs.map((k) => ({ key: k, label: t(`people.tab.${k}`), href: href("/people", { tab: k === "users" ? undefined : k }) }))} />
      {at === "users" && <Users />}
      {at === "apps" && <Apps />}
      {at === "grants" && <Grants />}
    </>
  );
}
