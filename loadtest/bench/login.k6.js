// The login flow as a k6 script: the steps that benchctl's own flow login takes
// (page, form, code exchange; a new connection each iteration), in the way that
// k6's documentation shows for forms. The bench runs it where k6 is installed:
//
//   k6 run -e URL=http://127.0.0.1:9080 -e REALM=realm_000 -e CLIENT=app_000000 -e SECRET=… -e USER_NAME=user_000000 -e PASSWORD=… login.k6.js
import http from 'k6/http';
import { check } from 'k6';
import { randomBytes } from 'k6/crypto';
import encoding from 'k6/encoding';

export const options = {
  vus: Number(__ENV.VUS || 16),
  duration: __ENV.DURATION || '10s',
  noVUConnectionReuse: true,
  discardResponseBodies: false,
  thresholds: { checks: ['rate==1'] },
};

const realm = `${__ENV.URL}/realms/${__ENV.REALM}/protocol/openid-connect`;
const redirect = 'http://dummy/url';
const random = () => encoding.b64encode(randomBytes(16), 'rawurl');

export default function () {
  const state = random();
  const page = http.get(`${realm}/auth?client_id=${__ENV.CLIENT}&redirect_uri=${encodeURIComponent(redirect)}&response_type=code&scope=openid&state=${state}&nonce=${random()}`, { tags: { name: 'auth' } });
  if (!check(page, { 'login page': (r) => r.status === 200 && r.body.includes('kc-form-login') })) return;

  const form = page.submitForm({
    formSelector: '#kc-form-login',
    fields: { username: __ENV.USER_NAME, password: __ENV.PASSWORD },
    params: { redirects: 0, tags: { name: 'authenticate' } },
  });
  const location = form.headers['Location'] || '';
  const code = (location.match(/[?&]code=([^&]+)/) || [])[1];
  if (!check(form, { 'code': (r) => r.status === 302 && location.includes(`state=${state}`) && code !== undefined })) return;

  const tokens = http.post(`${realm}/token`, {
    grant_type: 'authorization_code', code, redirect_uri: redirect, client_id: __ENV.CLIENT, client_secret: __ENV.SECRET,
  }, { tags: { name: 'token' } });
  check(tokens, { 'tokens': (r) => r.status === 200 && r.json('access_token') !== undefined && r.json('id_token') !== undefined });
}
