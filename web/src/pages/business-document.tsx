// The document of a business, to read, copy and download.
import { useEffect, useState } from "preact/hooks";
import { may, send } from "../api.ts";
import { href } from "../router.ts";
import { CopyButton, Problem } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";

export function DocumentTab({ biz, version }: { biz: number; version: number }) {
  const doc = useLoad(async (s) => (await send("GET", `/topology/${biz}`, { accept: "application/yaml", signal: s })).text(), [biz, version]);
  const [url, setUrl] = useState("");
  useEffect(() => {
    if (doc.data === undefined) return;
    const made = URL.createObjectURL(new Blob([doc.data], { type: "application/yaml" }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [doc.data]);

  if (doc.failure) return <Problem of={doc.failure} retry={doc.reload} />;
  if (doc.data === undefined) return <p class="dim loading" role="status">{t("loading")}</p>;
  return (
    <section class="card stack">
      <div class="row">
        <a class="button" href={url} download={`business-${biz}.yaml`}>{t("doc.download")}</a>
        <CopyButton text={doc.data} />
        {may("topology") && <a class="button" href={href(`/businesses/${biz}`, { tab: "apply" })}>{t("doc.edit")}</a>}
      </div>
      <pre class="biz-document" tabIndex={0} role="region" aria-label={t("doc.label")}>{doc.data}</pre>
    </section>
  );
}
