import { t } from "../words.ts";

export default function Overview() {
  return <p>{t("loading")}</p>;
}
