import { t } from "../words.ts";

export default function Task() {
  return <p>{t("loading")}</p>;
}
