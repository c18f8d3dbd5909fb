import { t } from "../words.ts";

export default function Audit() {
  return <p>{t("loading")}</p>;
}
