/** Tokens from AWS's own signer, which is loaded when the first one is needed, so that who brings tokens can do without. */
import { SignerMissingError } from './errors.js';
import type { SignedToken, TokenProvider, TokenRequest } from './token-cache.js';
import { expiryOf } from './token-text.js';

/** AWS credentials, as every AWS library has them. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

/** Credentials, or where they come from, such as `fromNodeProviderChain()` of the AWS SDK. */
export type AwsCredentialsSource = AwsCredentials | (() => Promise<AwsCredentials>);

export interface SignerOptions {
  /** Default: the AWS SDK's usual search (environment, profile, container, instance). */
  readonly credentials?: AwsCredentialsSource | undefined;
  /** How long a token is good for. Default 900. */
  readonly tokenLifeSeconds?: number | undefined;
}

interface SignerSettings {
  readonly hostname: string;
  readonly region: string;
  readonly expiresIn?: number;
  readonly credentials?: AwsCredentialsSource;
}

interface SignerModule {
  readonly DsqlSigner: new (
    settings: SignerSettings,
  ) => { getDbConnectAuthToken(): Promise<string>; getDbConnectAdminAuthToken(): Promise<string> };
}

const defaultLifeSeconds = 900;

/** A token provider that signs with AWS credentials, which are searched for once. `load` stands in for the import in tests. */
export function awsTokenProvider(
  { credentials, tokenLifeSeconds: expiresIn = defaultLifeSeconds }: SignerOptions = {},
  load: () => Promise<unknown> = () => import('@aws-sdk/dsql-signer'),
): TokenProvider {
  let source = credentials;
  return async (request: TokenRequest): Promise<SignedToken> => {
    const { DsqlSigner } = await loadSigner(load);
    const settings = { hostname: request.host, region: request.region, expiresIn };
    // The search remembers what it found, so there must be one search, and not one for each token.
    source ??= searchOf(new DsqlSigner(settings));
    const identity = typeof source === 'function' ? await source() : source;
    const signer = new DsqlSigner(identity === undefined ? settings : { ...settings, credentials: identity });
    const token =
      request.user === 'admin'
        ? await signer.getDbConnectAdminAuthToken()
        : await signer.getDbConnectAuthToken();
    return { token, expiresAt: earlier(expiryOf(token), identity?.expiration) };
  };
}

async function loadSigner(load: () => Promise<unknown>): Promise<SignerModule> {
  try {
    return (await load()) as SignerModule;
  } catch (error) {
    throw new SignerMissingError(error);
  }
}

/** The AWS SDK's usual search for credentials, which is begun when they are needed first. */
export function usualCredentials(
  load: () => Promise<unknown> = () => import('@aws-sdk/dsql-signer'),
): () => Promise<AwsCredentials> {
  let search: (() => Promise<AwsCredentials>) | undefined;
  return async () => {
    // The text to be signed does not matter here.
    search ??= searchOf(new (await loadSigner(load)).DsqlSigner({ hostname: 'none', region: 'us-east-1' }));
    if (search === undefined) throw new SignerMissingError(new Error('It does not search for credentials.'));
    return search();
  };
}

/** The search that a signer does when it is given nothing. Should it be kept elsewhere one day, each signer does its own. */
function searchOf(signer: object): (() => Promise<AwsCredentials>) | undefined {
  const { credentials } = signer as { credentials?: unknown };
  return typeof credentials === 'function' ? (credentials as () => Promise<AwsCredentials>) : undefined;
}

function earlier(tokenEnd: number | undefined, credentialsEnd: Date | undefined): Date | undefined {
  const ends = [tokenEnd, credentialsEnd?.getTime()].filter((end) => end !== undefined);
  return ends.length === 0 ? undefined : new Date(Math.min(...ends));
}
