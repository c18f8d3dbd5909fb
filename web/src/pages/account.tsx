import { t } from "../words.ts";

export default function Account() {
  return <p>{t("loading")}</p>;
}
