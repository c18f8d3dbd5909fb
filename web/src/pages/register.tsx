import { t } from "../words.ts";

export default function Register() {
  return <p>{t("loading")}</p>;
}
