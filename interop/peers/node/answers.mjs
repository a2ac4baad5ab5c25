// What a client answers when a server asks it something.
export function answers(profile, seen) {
    return {
        elicit: async request => request.params.mode === 'url' || seen.action !== 'accept'
            ? { action: seen.action }
            : { action: 'accept', content: { name: 'Ada' } },
        sample: async () => ({
            role: 'assistant', model: 'interop-model', stopReason: 'endTurn',
            content: { type: 'text', text: 'sampled by the client' }
        }),
        roots: async () => ({ roots: [{ uri: profile.root, name: 'interop' }] })
    };
}
