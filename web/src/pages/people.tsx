import { t } from "../words.ts";

export default function People() {
  return <p>{t("loading")}</p>;
}
