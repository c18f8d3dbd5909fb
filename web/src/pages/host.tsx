import { t } from "../words.ts";

export default function Host() {
  return <p>{t("loading")}</p>;
}
